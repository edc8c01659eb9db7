"""Serve the model of ``train.py``, ask its JSON API about a picture, and stop. Expect its three likeliest
labels.

From a shell, ``sarb serve runs/example`` shows the page to you. Needs ``pip install 'sarb[serve]'``.
"""

import json
from pathlib import Path
from threading import Thread
from urllib.request import Request, urlopen

import uvicorn

import sarb
from sarb.serve.app import create_app
from sarb.serve.recogniser import Recogniser
from sarb.serve.start import listen

run = Path("runs/example")
server = uvicorn.Server(
    uvicorn.Config(create_app(run, Recogniser(sarb.load_model(run))), log_config=None, log_level="warning")
)
door = listen("127.0.0.1", 0)  # 0 takes any free port
thread = Thread(target=server.run, kwargs={"sockets": [door]}, daemon=True)
thread.start()
photo = sarb.load("demo", train=64, test=32, size=64).test.paths[0].read_bytes()
form = (
    b'--x\r\nContent-Disposition: form-data; name="photos"; filename="photo.jpg"\r\n\r\n%b\r\n--x--\r\n'
    % photo
)
kind = {"Content-Type": "multipart/form-data; boundary=x"}
with urlopen(
    Request(f"http://127.0.0.1:{door.getsockname()[1]}/api/predict", form, kind), timeout=60
) as answer:
    (found,) = json.load(answer)
print(found["name"], [(label["label"], round(label["probability"], 2)) for label in found["labels"][:3]])
server.should_exit = True
thread.join()
