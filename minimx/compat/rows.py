"""The rows of the table of differences: what MXNet 1.9.1 has and minimx has not, or has otherwise.

Names are paths below mxnet, with `nd` for `ndarray` and `sym` for `symbol`; those of operators in the registry begin with `operators`.
A row for `contrib.quantization` is one for all that is in it, and a star stands for any letters. The note says what is otherwise, and
what to use instead. differences.py finds rows and makes messages of them.
"""

from __future__ import annotations

from typing import NamedTuple

from ..util import NO_NUMPY_INTERFACE


class Row(NamedTuple):
    """Names, separated by spaces; what is otherwise with them; whether they are absent."""

    names: str
    note: str
    absent: bool = True


_LOW_PRECISION = "operators on 8-bit integers are not planned; net.cast('float16') halves the memory"
_SPARSE = "arrays are dense here; leave the storage type out, or say 'default'"
_DENSE_ONLY = "arrays are dense here"
_C_LIBRARY = "it hands something to MXNet's C library, and minimx has none"
_EVERY_READ = (
    "an error of a computation is raised at every read of what depends on it, until that is overwritten; MXNet raises it once and then "
    "returns what memory holds"
)
_HELPER = "a helper for MXNet's own code"

MODULES = (
    Row("np npx", NO_NUMPY_INTERFACE),
    Row("contrib.quantization contrib.quant", _LOW_PRECISION),
    Row("contrib.svrg_optimization", "SVRG's two gradients can be written with gluon and autograd"),
    Row(
        "contrib.amp.lists contrib.amp.list_* contrib.amp.bfloat16",
        "no operator computes in another precision than its arrays have; contrib.amp has the functions of a training loop",
    ),
    Row("error", "catch mx.MXNetError, or the built-in exception that it also is, such as ValueError"),
    Row("executor_manager", "use gluon.Trainer with gluon.utils.split_and_load, or mod.Module with several contexts"),
    Row(
        "kvstore.kvstore_server kvstore.KVStoreServer",
        "there are no servers; processes that mpiexec starts sum gradients among themselves",
    ),
    Row("library", "it loads operators written in C++; write them in Python, with mx.operator.CustomOp or autograd.Function"),
    Row("notebook", "minimx.d2l.Animator draws a curve while a notebook's cell runs"),
    Row("rtc", "for CUDA source use cupy.RawKernel, on arrays that cupy.from_dlpack takes"),
    Row("torch", "share memory with PyTorch through DLPack: torch.from_dlpack(array)"),
)

OTHER_NAMES = (
    Row(
        "io.ImageRecordIter_v1 io.ImageRecordUInt8Iter_v1",
        "io.ImageRecordIter and io.ImageRecordUInt8Iter replaced them in MXNet 1.x",
    ),
    Row("nd.imdecode", "use mx.image.imdecode(bytes)"),
    Row("nd.op.CachedOp", "use nd.CachedOp"),
    Row(
        "gluon.model_zoo.model_store.apache_repo_url", "the environment variable MXNET_GLUON_REPO says where files are published"
    ),
    Row("operator.NDArrayOp operator.NumpyOp operator.PythonOp", "the forms of 2015; write a mx.operator.CustomOp"),
    Row("optimizer.Optimizer.set_lr_scale", "set_lr_mult() sets the factors of learning rates"),
    Row(
        "executor.Executor.get_optimized_symbol",
        "an executor runs the symbol that it was bound to; bind sym.optimize_for(backend), and executor.program.report() says how",
    ),
    Row("sym.Symbol.gradient", "bind the symbol and call backward(), or use autograd"),
    Row("test_utils.download_model", "the models are no longer published there; gluon.model_zoo has their architectures"),
    Row("test_utils.get_im2rec_path", "`python -m minimx im2rec` is that program"),
    Row("test_utils.get_mnist_pkl", "nothing is unpickled; get_mnist() reads the data set"),
    Row(
        "nd.contrib.dgl_* nd.contrib.edge_id sym.contrib.dgl_* sym.contrib.edge_id operators._contrib_dgl_* operators._contrib_edge_id",
        "graphs as sparse matrices are not planned; arrays store all their elements",
    ),
    Row(
        "nd.contrib.quantize* nd.contrib.requantize nd.contrib.dequantize nd.contrib.calibrate_entropy "
        "sym.contrib.quantize* sym.contrib.requantize sym.contrib.dequantize sym.contrib.calibrate_entropy "
        "operators._contrib_quantize* operators._contrib_requantize operators._contrib_dequantize operators._contrib_calibrate_entropy",
        _LOW_PRECISION,
    ),
)

SPARSE = (
    Row(
        "test_utils.create_sparse_array test_utils.create_sparse_array_zd test_utils.rand_sparse_ndarray "
        "test_utils.shuffle_csr_column_indices",
        f"{_SPARSE}; rand_ndarray() makes a random array",
    ),
    Row(
        "gluon.Parameter.list_row_sparse_data gluon.Parameter.row_sparse_data",
        "parameters are dense here; data() and list_data() give them",
    ),
    Row("nd.contrib.SparseEmbedding sym.contrib.SparseEmbedding", f"{_DENSE_ONLY}; Embedding has the same values"),
    Row("nd.contrib.getnnz sym.contrib.getnnz", f"{_DENSE_ONLY}; (x != 0).sum() counts the elements that are not 0"),
    Row("operators._contrib_SparseEmbedding operators._contrib_getnnz base.NotSupportedForSparseNDArray", _DENSE_ONLY),
    Row("nd.sparse.*NDArray.*", "no array is sparse here, so that nothing has it"),
    Row(
        "nd.sparse.BaseSparseNDArray nd.sparse.CSRNDArray nd.sparse.RowSparseNDArray",
        "no array is an instance of it; functions that would make one say what to do instead",
        absent=False,
    ),
    Row("gluon.nn.Embedding nd.Embedding", "sparse_grad is accepted, and the gradient is dense", absent=False),
)

INSIDE = (
    Row(
        "base.MXCallbackList base.add_fileline_to_docstring base.build_param_doc base.c2pyerror base.c_array base.c_array_buf "
        "base.c_handle_array base.c_str base.c_str_array base.check_call base.ctypes2buffer base.ctypes2numpy_shared "
        "base.error_types base.get_last_ffi_error base.mx_float_p base.register_error base.with_metaclass nd.CachedOp.handle "
        "nd.CachedOp.is_np_sym nd.NDArray.handle sym.Symbol.handle nd.DLContext nd.DLDataType nd.DLManagedTensor nd.DLTensor "
        "base.classproperty profiler.profiler_kvstore_handle profiler.set_kvstore_handle",
        _C_LIBRARY,
    ),
    Row("nd.NDArray.writable", "every array can be written to"),
    Row(
        "libinfo.find_conf_path libinfo.find_include_path libinfo.find_lib_path",
        "minimx is Python, and has no shared library to link to",
    ),
    Row(
        "nd.NDArray.as_np_ndarray sym.Symbol.as_np_ndarray util.np_ufunc_legal_option util.wrap_np_binary_func util.wrap_np_unary_func",
        NO_NUMPY_INTERFACE,
    ),
    Row(
        "nd.get_indexing_dispatch_code nd.get_oshape_of_gather_nd_op nd.indexing_key_expand_implicit_axes "
        "nd.check_boolean_array_dimension",
        f"{_HELPER}; index arrays as NumPy does",
    ),
    Row(
        "gluon.data.dataloader.ConnectionWrapper gluon.data.dataloader.Queue gluon.data.dataloader.SimpleQueue "
        "gluon.data.dataloader.fetcher_loop_v1 gluon.data.dataloader.rebuild_ndarray gluon.data.dataloader.rebuild_np_ndarray "
        "gluon.data.dataloader.reduce_ndarray gluon.data.dataloader.reduce_np_ndarray gluon.data.dataloader.worker_loop_v1 "
        "gluon.data.dataloader.DataLoaderV1",
        "a part of MXNet's DataLoader; DataLoader itself is here",
    ),
    Row("gluon.model_zoo.vision.inception.make_aux", _HELPER),
    Row(
        "metric.PearsonCorrelation.reset_micro metric.PearsonCorrelation.update_cov metric.PearsonCorrelation.update_variance",
        "update() and reset() do what they did",
    ),
    Row("model.SKLEARN_INSTALLED", "no part of minimx uses scikit-learn"),
    Row(
        "module.executor_group.DataParallelExecutorGroup.bind_exec module.executor_group.DataParallelExecutorGroup.decide_slices",
        "a part of MXNet's Module; Module.bind() does what they did",
    ),
    Row(
        "operators._CrossDeviceCopy operators._CustomFunction operators._NDArray operators._Native operators._copyto operators._cvimdecode "
        "operators._cvimread operators._imdecode operators._onehot_encode operators._set_value operators._split_v2_backward",
        "no graph that is saved has it",
    ),
    Row("runtime.Features.instance", "Features() is made anew, as what is installed may change"),
)

CALLED_OTHERWISE = (
    Row(
        "nd.NDArray executor.Executor io.MXDataIter kvstore.KVStore",
        "made by functions (nd.array, Symbol.bind), not from a handle of a C library",
        absent=False,
    ),
    Row("nd.NDArray.broadcast_like", "its first parameter is called rhs, as that of nd.broadcast_like", absent=False),
    Row(
        "contrib.amp.convert_hybrid_block contrib.amp.convert_model contrib.amp.convert_symbol",
        "raises an error: graphs are not converted to mixed precision; net.cast('float16') converts a network",
        absent=False,
    ),
    Row(
        "gluon.contrib.cnn.DeformableConvolution gluon.contrib.cnn.ModulatedDeformableConvolution",
        "has no parameter op_name, which names another operator to call",
        absent=False,
    ),
    Row("gluon.rnn.ModifierCell.begin_state", "takes batch_size first, as begin_state() of the other cells", absent=False),
    Row(
        "gluon.utils.HookHandle.attach metric.CompositeEvalMetric.update_dict optimizer.Updater.set_states",
        "a parameter has another name; give it by position",
        absent=False,
    ),
    Row("module.executor_group.DataParallelExecutorGroup.get_outputs", "gives the outputs of the whole batch", absent=False),
    Row(
        "nd.contrib.multi_adamw_update nd.contrib.multi_mp_adamw_update nd.contrib.multi_lamb_update nd.contrib.multi_mp_lamb_update",
        "out and name are given by keyword",
        absent=False,
    ),
)

BEHAVES_OTHERWISE = (
    Row("nd.NDArray.wait_to_read nd.waitall", f"{_EVERY_READ}. waitall() raises each error once", absent=False),
    Row(
        "nd.NDArray.asnumpy",
        f"{_EVERY_READ}. NumPy 2.4 and newer refuse float() of the shape (1,), which sums and means have: write asscalar(), or install "
        "'numpy<2.4'; `python -m minimx run` lends it",
        absent=False,
    ),
    Row(
        "nd.NDArray.astype",
        "arithmetic that would cut off a number without a word (an integer array times 0.5) raises a DTypeError, which names astype()",
        absent=False,
    ),
    Row(
        "random.seed nd.random.*",
        "the same seed gives other numbers than in MXNet, and the same ones on any number of threads",
        absent=False,
    ),
    Row("gpu context.num_gpus", "GPUs are used through CuPy; device.simulate_gpus(n) makes them of host memory", absent=False),
    Row("cpu", "cpu(0), cpu(1), ... work at the same time, each in a thread of its own", absent=False),
    Row(
        "gluon.Trainer.save_states optimizer.Updater.get_states",
        "the file is one of arrays and holds no code; MXNet's, which are pickles, are not read",
        absent=False,
    ),
    Row(
        "gluon.HybridBlock.hybridize",
        "static_shape, forward_bulk_size and backward_bulk_size have no effect, as a graph is one task for known shapes; several outputs "
        "come in the tuples and lists that the code makes, hybridized or not, where MXNet makes lists of all when it is hybridized",
        absent=False,
    ),
    Row(
        "gluon.data.DataLoader",
        "batches of worker processes are in plain host memory, where MXNet's are on cpu_shared(0)",
        absent=False,
    ),
    Row("gluon.data.RandomSampler", "the order follows mx.random.seed(), not NumPy's generator", absent=False),
    Row("gluon.loss.PoissonNLLLoss", "with compute_full, a target of 0 gives a number, where MXNet gives NaN", absent=False),
    Row(
        "optimizer.NAG",
        "weight decay in the momentum is that of the old weight, where MXNet takes that of the new one",
        absent=False,
    ),
    Row("optimizer.DCASGD", "works with momentum, too", absent=False),
    Row("optimizer.Adamax", "elements whose gradients were all 0 stay; MXNet gives NaN", absent=False),
    Row(
        "optimizer.LARS",
        "a Trainer that updates on its store corrects the momentum of all parameters when the learning rate changes, MXNet's that of the "
        "first only; with update_on_kvstore=False only that of the first device is corrected, as in MXNet, so that the weights of several "
        "devices drift apart",
        absent=False,
    ),
    Row(
        "optimizer.LBSGD",
        "with batch_scale=2 or more the gradients that are added up are copies, where MXNet keeps the array that the next backward "
        "overwrites; with update_on_kvstore=False the gradients of several devices count as several batches, as in MXNet, so that their "
        "weights drift apart",
        absent=False,
    ),
    Row(
        "optimizer.Nadam",
        "with update_on_kvstore=False the weights of several devices stay equal, where MXNet's drift apart",
        absent=False,
    ),
    Row("metric.CompositeEvalMetric.get_metric", "raises its error for a wrong number; MXNet returns the error", absent=False),
    Row("nd.RNN", "sequence_length, projections and bounds of cells work on CPUs, too", absent=False),
    Row("nd.dot", "integers work", absent=False),
    Row("nd.khatri_rao nd.image.to_tensor nd.contrib.RROIAlign", "has a gradient", absent=False),
    Row("nd.CTCLoss", "float64 works, and labels are checked", absent=False),
    Row("nd.contrib.MultiBoxTarget", "minimum_negative_samples counts on CPUs, too", absent=False),
    Row("image.imdecode recordio.unpack_img", "Pillow decodes; what is no image raises a FileFormatError", absent=False),
    Row("io.LibSVMIter", "an index beyond data_shape is an error; MXNet writes out of bounds", absent=False),
    Row("nd.save", "arrays with no elements or no axes can be saved; MXNet reads these inside np_shape(True) only", absent=False),
    Row(
        "visualization.print_summary",
        "counts the parameters themselves; MXNet guesses their number from the operators",
        absent=False,
    ),
    Row(
        "lr_scheduler.PolyScheduler lr_scheduler.CosineScheduler",
        "beyond max_update the rate is final_lr, also where a training jumps there; MXNet's is the one that was last asked for",
        absent=False,
    ),
    Row(
        "gluon.HybridBlock.export",
        "hybridize() and a call come first, for every block; MXNet also exports one that has only inferred its own shapes",
        absent=False,
    ),
    Row(
        "visualization.plot_network",
        "without the package graphviz a picture of its own, as SVG; pip install graphviz for view(), attr() and other formats",
        absent=False,
    ),
    Row("runtime.Features", "tells what is installed now", absent=False),
    Row(
        "kvstore.create",
        "stores of several processes (dist_sync) work over MPI, without servers: mpiexec -n 4 python train.py. There is no dist_async",
        absent=False,
    ),
    Row("test_utils.same_symbol_structure", "graphs of different lengths are not the same", absent=False),
    Row("test_utils.check_gluon_hybridize_consistency", "takes NDArrays", absent=False),
)

#: All rows.
TABLE: tuple[Row, ...] = (*MODULES, *OTHER_NAMES, *SPARSE, *INSIDE, *CALLED_OTHERWISE, *BEHAVES_OTHERWISE)
