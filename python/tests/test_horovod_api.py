"""The names, signatures and errors of peal.horovod that need one process only."""

from __future__ import annotations

import inspect
import os
import unittest
from typing import Any
from unittest import mock

from needs import import_torch

import_torch()

import torch

import peal.horovod as hvd
from peal.horovod import job, mpi_ops, process_sets

from horovod_ranks import JobOfOneTest

# The signatures of horovod.torch 0.28.1. ps is global_process_set, none is Compression.none. After "*" come
# arguments that peal adds.
SIGNATURES = [
    "init(comm=None, process_sets=None, *, while_joined='allreduce')",
    "shutdown()",
    "is_initialized()",
    "start_timeline(file_path, mark_cycles=False)",
    "stop_timeline()",
    "rank()",
    "size()",
    "local_rank()",
    "local_size()",
    "cross_rank()",
    "cross_size()",
    "mpi_threads_supported()",
    "mpi_enabled()",
    "gloo_enabled()",
    "allreduce(tensor, average=None, name=None, compression=none, op=None, prescale_factor=1.0, "
    "postscale_factor=1.0, process_set=ps)",
    "allreduce_async(tensor, average=None, name=None, op=None, prescale_factor=1.0, "
    "postscale_factor=1.0, process_set=ps)",
    "allreduce_(tensor, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0, "
    "process_set=ps)",
    "allreduce_async_(tensor, average=None, name=None, op=None, prescale_factor=1.0, "
    "postscale_factor=1.0, process_set=ps)",
    "grouped_allreduce(tensors, average=None, name=None, compression=none, op=None, "
    "prescale_factor=1.0, postscale_factor=1.0, process_set=ps)",
    "grouped_allreduce_async(tensors, average=None, name=None, op=None, prescale_factor=1.0, "
    "postscale_factor=1.0, process_set=ps)",
    "grouped_allreduce_(tensors, average=None, name=None, op=None, prescale_factor=1.0, "
    "postscale_factor=1.0, process_set=ps)",
    "grouped_allreduce_async_(tensors, average=None, name=None, op=None, prescale_factor=1.0, "
    "postscale_factor=1.0, process_set=ps)",
    "sparse_allreduce_async(tensor, name, op, process_set=ps)",
    "allgather(tensor, name=None, process_set=ps)",
    "allgather_async(tensor, name=None, process_set=ps)",
    "grouped_allgather(tensors, name=None, process_set=ps)",
    "grouped_allgather_async(tensors, name=None, process_set=ps)",
    "broadcast(tensor, root_rank, name=None, process_set=ps)",
    "broadcast_async(tensor, root_rank, name=None, process_set=ps)",
    "broadcast_(tensor, root_rank, name=None, process_set=ps)",
    "broadcast_async_(tensor, root_rank, name=None, process_set=ps)",
    "alltoall(tensor, splits=None, name=None, process_set=ps)",
    "alltoall_async(tensor, splits=None, name=None, process_set=ps)",
    "reducescatter(tensor, name=None, compression=none, op=0, process_set=ps, prescale_factor=1.0, "
    "postscale_factor=1.0)",
    "reducescatter_async(tensor, name=None, op=0, process_set=ps, prescale_factor=1.0, "
    "postscale_factor=1.0)",
    "grouped_reducescatter(tensors, name=None, compression=none, op=0, process_set=ps, "
    "prescale_factor=1.0, postscale_factor=1.0)",
    "grouped_reducescatter_async(tensors, name=None, op=0, process_set=ps, prescale_factor=1.0, "
    "postscale_factor=1.0)",
    "poll(handle)",
    "synchronize(handle)",
    "join(device=-1)",
    "barrier(process_set=ps)",
    "ProcessSet(ranks_or_comm)",
    "add_process_set(process_set)",
    "remove_process_set(process_set)",
    "broadcast_parameters(params, root_rank, *, process_set=ps)",
    "broadcast_optimizer_state(optimizer, root_rank, model=None, *, process_set=ps)",
    "broadcast_object(obj, root_rank=0, name=None, process_set=ps)",
    "allgather_object(obj, name=None, *, process_set=ps)",
    "DistributedOptimizer(optimizer, named_parameters=None, compression=none, "
    "backward_passes_per_step=1, op=0, gradient_predivide_factor=1.0, num_groups=0, groups=None, "
    "sparse_as_dense=False, process_set=ps, *, average_aggregated_gradients=False)",
    "SyncBatchNorm(num_features, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)",
    "elastic.TorchState(model=None, optimizer=None, **kwargs)",
    "elastic.ElasticSampler(dataset, shuffle=True, seed=0)",
    "elastic.run(func)",
    "run(func, args=(), kwargs=None, num_proc=1, min_num_proc=None, max_num_proc=None, slots=None, "
    "reset_limit=None, cooldown_range=None, hosts=None, hostfile=None, start_timeout=None, "
    "ssh_port=None, ssh_identity_file=None, disable_cache=None, output_filename=None, verbose=None, "
    "use_gloo=None, use_mpi=None, mpi_args=None, network_interface=None, executable=None, np=None, "
    "min_np=None, max_np=None)",
]

OTHER_NAMES = ["Average", "Sum", "Adasum", "Min", "Max", "Product", "Compression", "HorovodInternalError",
               "global_process_set", "elastic"]


def parts_of_stub(function: Any) -> str:
    """The parameters in the text that pybind11 puts before a docstring, without their types."""
    import ast

    tree = ast.parse(f"def {function.__doc__.split(chr(10))[0]}: ...").body[0]
    assert isinstance(tree, ast.FunctionDef)
    return ", ".join(argument.arg for argument in (*tree.args.posonlyargs, *tree.args.args))


def signature_of(function: Any) -> str:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except ValueError:
        return parts_of_stub(function)
    words, named_only = [], False
    for one in parameters:
        if one.kind is one.KEYWORD_ONLY and not named_only:
            named_only = True
            words.append("*")
        star = "**" if one.kind is one.VAR_KEYWORD else ""
        default = {id(hvd.global_process_set): "ps", id(hvd.Compression.none): "none"}.get(
            id(one.default), repr(one.default))
        words.append(f"{star}{one.name}" + ("" if one.default is one.empty else f"={default}"))
    return ", ".join(words)


class NamesTest(unittest.TestCase):
    def test_every_function_of_horovod_torch_has_its_signature(self) -> None:
        for line in SIGNATURES:
            name, _, parameters = line.partition("(")
            owner: Any = hvd
            for part in name.split("."):
                owner = getattr(owner, part)
            with self.subTest(name):
                self.assertEqual(signature_of(owner), parameters.rstrip(")"))

    def test_the_other_names_exist(self) -> None:
        for name in [*OTHER_NAMES, *hvd.__all__]:
            self.assertTrue(hasattr(hvd, name), name)
        self.assertEqual(len({hvd.Average, hvd.Sum, hvd.Adasum, hvd.Min, hvd.Max, hvd.Product}), 6)
        for name in mpi_ops.__all__:
            self.assertTrue(hasattr(mpi_ops, name), name)

    def test_everything_public_has_a_docstring(self) -> None:
        for name in hvd.__all__:
            value = getattr(hvd, name)
            if callable(value) and value.__module__.startswith("peal.horovod"):
                self.assertTrue(inspect.getdoc(value) or name.endswith("_built") or name.endswith("_enabled")
                                or name == "mpi_threads_supported", name)

    def test_what_was_built_is_known_before_init(self) -> None:
        self.assertTrue(hvd.gloo_built())
        for name in ("mpi", "ddl", "ccl", "rocm"):
            self.assertFalse(getattr(hvd, f"{name}_built")(), name)
        self.assertEqual(hvd.nccl_built(), 0)
        self.assertEqual(hvd.cuda_built(), torch.version.cuda is not None)

    def test_the_exceptions_have_the_bases_that_programs_expect(self) -> None:
        self.assertTrue(issubclass(hvd.HorovodInternalError, RuntimeError))
        self.assertTrue(issubclass(hvd.HorovodMismatchError, hvd.HorovodInternalError))
        self.assertTrue(issubclass(hvd.HostsUpdatedInterrupt, RuntimeError))
        self.assertTrue(hvd.HostsUpdatedInterrupt(True).skip_sync)
        self.assertFalse(hvd.HostsUpdatedInterrupt().skip_sync)
        error = hvd.HorovodVersionMismatchError("torch", "2", "1")
        self.assertIsInstance(error, ImportError)
        self.assertEqual((error.version, error.installed_version), ("2", "1"))


class BeforeInitTest(unittest.TestCase):
    def test_questions_about_the_job_are_value_errors(self) -> None:
        self.assertFalse(hvd.is_initialized())
        for function in (hvd.rank, hvd.size, hvd.local_rank, hvd.local_size, hvd.cross_rank, hvd.cross_size,
                         mpi_ops.is_homogeneous, hvd.gloo_enabled, hvd.mpi_enabled, hvd.mpi_threads_supported):
            with self.assertRaisesRegex(ValueError, "Horovod has not been initialized; use hvd.init()"):
                function()

    def test_init_rejects_wrong_arguments(self) -> None:
        communicator = type("Comm", (), {"__module__": "mpi4py.MPI"})()
        for arguments, words in (({"comm": communicator}, "not been built with MPI support"),
                                 ({"comm": 3}, "list of process ranks"),
                                 ({"process_sets": "static"}, "Invalid value for process_sets"),
                                 ({"while_joined": "some"}, "Invalid value for while_joined")):
            with self.assertRaisesRegex(ValueError, words):
                hvd.init(**arguments)
        self.assertFalse(hvd.is_initialized())


class ProcessSetTest(unittest.TestCase):
    def test_it_sorts_its_ranks_and_knows_nothing_before_its_registration(self) -> None:
        one = hvd.ProcessSet(range(2, -1, -2))
        self.assertEqual(str(one), "ProcessSet(process_set_id=None, ranks=[0, 2], mpi_comm=None)")
        self.assertIsNone(one.size())
        self.assertIsNone(one.rank())
        self.assertIsNone(hvd.ProcessSet([]).included())

    def test_it_rejects_what_is_not_a_rank(self) -> None:
        for ranks in ([0.5], ["0"], [True], 3, None):
            with self.assertRaisesRegex(ValueError, "list of process ranks or an mpi4py Comm"):
                hvd.ProcessSet(ranks)

    def test_sets_that_lost_a_rank_are_named_by_a_warning(self) -> None:
        sets = [hvd.ProcessSet([0, 1]), hvd.ProcessSet([0, 3])]
        with self.assertWarnsRegex(UserWarning, r"ranks=\[0, 3\].* no place among 3 ranks"):
            self.assertEqual(process_sets.remaining(sets, 3), sets[:1])


class CompressionTest(unittest.TestCase):
    def test_floating_types_become_16_bits_and_return(self) -> None:
        for compression, dtype in ((hvd.Compression.fp16, torch.float16), (hvd.Compression.bf16, torch.bfloat16)):
            for own in (torch.float32, torch.float64, torch.float16):
                tensor = torch.tensor([0.5, -3.0], dtype=own)
                small, context = compression.compress(tensor)
                self.assertEqual(small.dtype, dtype)
                back = compression.decompress(small, context)
                self.assertEqual(back.dtype, own)
                self.assertTrue(torch.equal(back, tensor))

    def test_other_types_pass_as_they_are(self) -> None:
        tensor = torch.tensor([1, 2])
        for compression in (hvd.Compression.none, hvd.Compression.fp16, hvd.Compression.bf16):
            small, context = compression.compress(tensor)
            self.assertIs(small, tensor)
            self.assertIs(compression.decompress(small, context), tensor)


class AverageTest(unittest.TestCase):
    def test_average_and_op_exclude_each_other(self) -> None:
        with self.assertRaisesRegex(ValueError, "The op parameter supersedes average"):
            hvd.allreduce(torch.ones(1), average=True, op=hvd.Sum)
        for average, op in ((True, hvd.Average), (False, hvd.Sum)):
            with self.assertWarns(DeprecationWarning):
                self.assertEqual(mpi_ops.handle_average_backwards_compatibility(None, average), op)
        self.assertEqual(mpi_ops.handle_average_backwards_compatibility(None, None), hvd.Average)


class OneRankTest(JobOfOneTest):
    def test_init_again_does_nothing_and_the_rank_is_0_of_1(self) -> None:
        hvd.init()
        self.assertEqual((hvd.rank(), hvd.size(), hvd.local_rank(), hvd.local_size(), hvd.cross_rank(),
                          hvd.cross_size()), (0, 1, 0, 1, 0, 1))
        self.assertTrue(mpi_ops.is_homogeneous())
        self.assertTrue(hvd.gloo_enabled())
        self.assertFalse(hvd.mpi_enabled())
        with self.assertRaisesRegex(ValueError, "Horovod MPI is not enabled; rebuild with MPI support"):
            hvd.mpi_threads_supported()

    def test_operations_give_back_their_tensors(self) -> None:
        tensor = torch.arange(6.0).reshape(3, 2)
        for result in (hvd.allreduce(tensor), hvd.allreduce(tensor, op=hvd.Sum), hvd.allgather(tensor),
                       hvd.broadcast(tensor, 0), hvd.reducescatter(tensor), hvd.alltoall(tensor),
                       hvd.grouped_allreduce([tensor])[0], hvd.synchronize(hvd.allreduce_async(tensor))):
            self.assertTrue(torch.equal(result, tensor))
        self.assertEqual(hvd.broadcast_object({"a": 1}), {"a": 1})
        self.assertEqual(hvd.allgather_object("x"), ["x"])
        self.assertEqual(hvd.join(), 0)

    def test_a_timeline_that_cannot_be_written_is_a_value_error(self) -> None:
        hvd.shutdown()
        with mock.patch.dict(os.environ, HOROVOD_TIMELINE="DYNAMIC"):
            hvd.init()
            with self.assertRaisesRegex(ValueError, "cannot write the timeline /nowhere/x: No such file"):
                hvd.start_timeline("/nowhere/x")

    def test_objects_of_all_sizes_around_those_that_travel_in_powers_of_two(self) -> None:
        for size in (0, 1, 40, 64, 500, 4000, 4096, 4200, 70_000):
            self.assertEqual(hvd.broadcast_object(b"x" * size), b"x" * size)

    def test_a_handle_is_good_once(self) -> None:
        handle = hvd.allreduce_async(torch.ones(2))
        self.assertIsInstance(handle, int)
        self.assertIsNotNone(hvd.synchronize(handle))
        self.assertIsNone(hvd.synchronize(handle))
        with self.assertRaisesRegex(ValueError, f"Handle {handle} was not created or has been cleared"):
            hvd.poll(handle)

    def test_sets_need_the_dynamic_mode_to_be_added_later(self) -> None:
        with self.assertRaisesRegex(ValueError, "HOROVOD_DYNAMIC_PROCESS_SETS=1"):
            hvd.add_process_set([0])
        self.assertFalse(hvd.remove_process_set(hvd.global_process_set))
        self.assertFalse(hvd.remove_process_set(hvd.ProcessSet([0])))
        with self.assertRaisesRegex(ValueError, "is not registered"):
            hvd.allreduce(torch.ones(1), process_set=hvd.ProcessSet([0]))

    def test_arguments_of_a_wrong_type_are_value_errors_that_name_the_argument(self) -> None:
        x = torch.ones(3)
        for words, call in (
                ("allreduce: the argument `tensor` must be a torch.Tensor, and is 3.0, of the type float",
                 lambda: hvd.allreduce(3.0)),
                ("`tensor` must be a torch.Tensor, and is None", lambda: hvd.allgather(None)),
                ("grouped_allreduce: the argument `tensors` must be a list of torch.Tensor",
                 lambda: hvd.grouped_allreduce([x, 3])),
                ("`op` must be an int, and is 'sum', of the type str", lambda: hvd.allreduce(x, op="sum")),
                ("`name` must be a str or None, and is 3, of the type int", lambda: hvd.allreduce(x, name=3)),
                ("`prescale_factor` must be a number", lambda: hvd.allreduce(x, prescale_factor="half")),
                ("`root_rank` must be an int, and is None", lambda: hvd.broadcast(x, None)),
                ("`handle` must be an int", lambda: hvd.synchronize("x")),
                ("process_set must be a ProcessSet, and is .0.", lambda: hvd.allreduce(x, process_set=[0])),
                ("must be a tensor of the type torch.int32, and has the type torch.int64",
                 lambda: hvd.alltoall(x, torch.tensor([3]))),
                ("`splits` must be a list of integers or a tensor of the type torch.int32, and is 3",
                 lambda: hvd.alltoall(x, 3))):
            with self.subTest(words), self.assertRaisesRegex(ValueError, words):
                call()
        self.assertTrue(torch.equal(hvd.allreduce(x, prescale_factor=2), 2 * x))

    def test_the_stall_report_shows_the_program_and_not_peal(self) -> None:
        def in_program() -> str:
            return job.whereabouts()

        text = in_program()
        self.assertTrue(text.endswith(f"in_program ({__file__}:{in_program.__code__.co_firstlineno + 1})"), text)
        self.assertEqual(text.count(" > "), 2)
        self.assertNotIn("whereabouts", text)

    def test_objects_that_cannot_be_pickled_are_value_errors(self) -> None:
        import threading

        for function in (hvd.broadcast_object, hvd.allgather_object):
            with self.assertRaisesRegex(ValueError, "cannot pickle"):
                function(threading.Lock())
        self.assertEqual(hvd.broadcast_object(3), 3)

    def test_parameters_that_are_not_tensors_are_value_errors(self) -> None:
        for params, words in ((3, "invalid params of type"), ("ab", "invalid params of type"),
                              ({"a": 3}, "'a' is not a tensor")):
            with self.assertRaisesRegex(ValueError, words):
                hvd.broadcast_parameters(params, root_rank=0)
        model = torch.nn.BatchNorm1d(2)
        for params in (model.state_dict(), model.named_parameters(), list(model.parameters())):
            hvd.broadcast_parameters(params, root_rank=0)


if __name__ == "__main__":
    unittest.main()
