"""Label Studio: its labelling configuration, tasks and answers, and how to reach its server.

config      the labelling configuration with one yes/no question per category, written and read
tasks       tasks, predictions and annotations as Label Studio stores them
answers     what the annotations of a task say about each category
host        its HTTP server: tokens, images, uploads, and its SDK
"""
