"""`mx.mod`: training a Symbol. A module binds a graph to devices, initializes its parameters, and fits them to data.

    module = mx.mod.Module(symbol)
    module.fit(train_iter, eval_data=test_iter, optimizer_params={"learning_rate": 0.1}, num_epoch=10)

`BaseModule` has what all kinds have in common: the loops of training and prediction. `Module` runs one Symbol on one device or several,
`BucketingModule` one for each length of the data, `SequentialModule` several modules in a chain, `PythonModule` code of a user. This is how
networks were trained before Gluon.
"""

from .base_module import BaseModule
from .bucketing_module import BucketingModule
from .module import Module
from .python_module import PythonLossModule, PythonModule
from .sequential_module import SequentialModule

__all__ = ["BaseModule", "BucketingModule", "Module", "PythonLossModule", "PythonModule", "SequentialModule"]
