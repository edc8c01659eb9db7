"""What ``sarb train`` does when nothing else is asked for.

names         which concepts of the backbone a category's name means
"""
