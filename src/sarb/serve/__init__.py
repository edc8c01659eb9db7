"""``sarb serve``: a web page and a JSON API to try a model on photos and to review unknown labels.

start         from the command line to a running server
app           the FastAPI application: the page, the report, and the routes below
api_try       *Try*: photos in, labels out
api_review    *Review*: questions, answers, undo
api_images    the photos under review and their heat maps
guard         refuses requests from other sites, limits uploads, adds security headers
recogniser    the model: probabilities and heat maps of one photo
heat          attention maps as bytes
pictures      photos as JPEG, small enough for a screen
desk          the review itself: hands out questions, saves answers, takes them back
questions     what is asked
answers       what has been answered, by whom, and what can be undone
order         which questions come first
leases        who holds which question
table         the user's labels as one table, and the way back to a file
journal       every answer, on disk before it is confirmed
saver         writes the CSV in the background
score_cache   the model's scores, kept from one start to the next
static/       the page: HTML, CSS and JavaScript
"""
