# All tasks as the notebook itself solves them. A person gives the points of task 4.

# %% answer-4
# Five operators became four. The pass `subexpressions` found that both tanh have the same input and keeps one of them. A tanh is a
# function of its input alone, so that both would have given the same bits.
