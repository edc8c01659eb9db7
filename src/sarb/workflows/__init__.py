"""What the sub-commands do, from source to folder.

training      ``sarb train``: load, hide, fit, calibrate on validation images, test, report
evaluation    ``sarb evaluate``
prediction    ``sarb predict``
calibration   ``sarb calibrate``
completion    ``sarb complete`` and ``sarb suggest``
listing       ``sarb list``
statistics    ``sarb data stats``
labelled      what they share: the data of a run, scores beside labels
"""
