"""Train SARB on the built-in data set with a third of its labels. Small sizes, so it takes seconds."""

import sarb

data = sarb.load("demo", train=64, test=32, size=64)  # leave the sizes out for the real set
train = data.train.hide(known=0.3, seed=0)
print(train.labels)

model = sarb.fit(
    train,
    method="sarb",
    network="ssgrl",
    backbone="tiny",  # leave it out for ImageNet weights
    image_size=64,
    epochs=3,
    method_options={"start": 1},  # blend from the second epoch on
    out="runs/example",
    resume=True,  # a second call finds the finished run
)
print(model)
