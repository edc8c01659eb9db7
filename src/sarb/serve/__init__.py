"""``sarb serve``: a web page and a JSON API to try a model on photos and to review unknown labels.

start              from the command line to a running server
opening            from a table of labels to a review
app                the FastAPI application: the page, the report, and the routes below
api_try            *Try*: photos in, labels out
api_review         *Review* and *Wall*: questions, answers, undo
api_label_studio   *Label Studio*: its ML-backend protocol
api_images         the photos under review and their heat maps
guard              refuses requests from other sites, adds security headers
token              off loopback, refuses requests without the token
bodies             how much may arrive
strict_json        JSON as its standard has it
turns              decoding waits for its turn, under a bound on memory
memory             gives memory back to the system
listening          the socket, its certificate, and the server on it
connections        closes slow connections, and limits their number
recogniser         the model: probabilities and heat maps of one photo
heat               attention maps as bytes
pictures           photos and thumbnails as JPEG
desk               the review itself: hands out questions, saves answers, takes them back
questions          what is asked
handout            who gets which questions next
answers            what has been answered, by whom, and what can be undone
order              which questions come first
leases             who holds which question
table              the user's labels as one table, and the way back to a file
resume             reads the journal of an earlier start
audit              what evaluate says about a table with answers
journal            every answer, on disk before it is confirmed
saver              writes the CSV in the background
score_cache        the model's scores, kept from one start to the next
label_studio       what the ML backend of Label Studio answers
label_studio_open  opens it for a run
task_images        the image of a task: from an allowed folder, or from Label Studio's server
collected          answers from Label Studio: the journal, and a copy of the table
retraining         trains again on them, one training at a time
say                messages on stderr
static/            the page: HTML, CSS and JavaScript
"""
