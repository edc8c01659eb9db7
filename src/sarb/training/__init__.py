"""How a network learns.

run           ``fit``, and the ``Run`` that knows how a model was made
loop          the only training loop
checkpoints   when it saves its state, also inside an epoch, and how it is taken up again
attributes    what a method keeps between two steps outside parameters and buffers
diverged      stop where a number is not finite, and say where it began
epochs        its epochs in words
spread        several processes, and the parts of a step
norms         batch norms over all processes
compiling     torch.compile for the trained part
fitted        a run of a fitted method: compute features, fit the ladder, try a residual
residual      the last rung of the ladder: a semantic network on top
finetune      train the last stage of the backbone too, if asked to, and keep it if held-out images gain
optim         parameter groups, optimisers, schedules
track         the rows of ``log.csv`` in TensorBoard or Weights & Biases
memory        keep freed memory for the next step
"""
