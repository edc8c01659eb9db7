"""Ask which unknown labels are most worth a person's answer. Expect five questions, each with its reason in
words.
"""

import sarb

data = sarb.load("demo", train=64, test=32, size=64)
train = data.train.hide(known=0.3, seed=0)
scores = sarb.predict(sarb.load_model("runs/example"), train)
calibration = sarb.load_calibration("runs/example")  # None if calibrate.py has not run

ask = sarb.suggest(scores, train.labels, budget=5, calibration=calibration)
for question in ask.questions:
    print(f"{question.file_name}: {question.label}? ({question.reason})")
ask.to_csv("runs/example/ask.csv")
