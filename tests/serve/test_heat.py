import base64

import numpy as np

from sarb.serve.heat import encode, to_bytes


def test_each_map_is_stretched_by_itself():
    maps = np.array([[[0.1, 0.2], [0.4, 0.5]], [[-4, 0], [-2, -4]]])
    assert to_bytes(maps).tolist() == [[[0, 64], [191, 255]], [[0, 255], [128, 0]]]


def test_a_flat_map_shows_nothing_and_nan_does_no_harm():
    maps = np.array([[[0.25, 0.25]], [[0.25, 0.25 + 1e-9]], [[np.nan, 1.0]], [[0.0, 0.0]]])
    assert to_bytes(maps).tolist() == [[[0, 0]], [[0, 0]], [[0, 255]], [[0, 0]]]
    assert to_bytes([[[1e6, 1e6 + 0.5]]]).tolist() == [[[0, 0]]]  # rounding of large numbers is not looking


def test_bytes_row_by_row():
    grid = np.arange(6, dtype=np.uint8).reshape(2, 3)
    assert base64.b64decode(encode(grid)) == bytes(range(6))
    assert base64.b64decode(encode(grid.T)) == bytes([0, 3, 1, 4, 2, 5])


def test_the_heat_is_the_attention_of_the_network(recogniser, squares_data):
    import torch

    picture, _ = squares_data.test[0]
    seen = recogniser.look(picture)
    network = recogniser.model.network
    with torch.inference_mode():
        maps = network.maps(torch.from_numpy(recogniser.model.transform(picture))[None])
        attention = network.attention(maps)[0].numpy()
    assert seen.heat.shape == attention.shape
    for heat, own in zip(seen.heat, attention, strict=True):
        assert heat.argmax() == own.argmax() and heat.max() == 255 and heat.min() == 0
    scores = recogniser.model.predict([picture])
    np.testing.assert_allclose(seen.probabilities, scores.probabilities[0], atol=1e-6)
