"""How a network learns.

loop          ``fit`` and the only training loop
optim         parameter groups, optimisers, schedules
track         the rows of ``log.csv`` in TensorBoard or Weights & Biases
memory        keep freed memory for the next step
"""
