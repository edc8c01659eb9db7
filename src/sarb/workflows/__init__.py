"""What the sub-commands do, from source to folder.

training             ``sarb train``: load, hide, fit, calibrate on validation images, test, report
tuning               ``sarb tune``
on_top               ``sarb train --on-top``: which settings that means
evaluation           ``sarb evaluate``
comparison           ``sarb compare``
tested               models with their scores, for a comparison
prediction           ``sarb predict``
calibration          ``sarb calibrate``
completion           ``sarb complete`` and ``sarb suggest``
listing              ``sarb list``
statistics           ``sarb data stats``
label_studio_push    ``sarb data push label-studio``
label_studio_pull    ``sarb data pull label-studio``
seen                 which images a run was trained on, and which it held out
audit                ``sarb data audit``
outputs              which existing files a command may replace
labelled             what they share: the data of a run, scores beside labels
"""
