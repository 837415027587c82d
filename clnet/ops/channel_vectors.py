"""The channels of one head as one vector, for numba: a whole head is loaded, weighed and stored at once.

The number of channels is a constant of the compiled function, so the vectors live in registers. Left to
itself, the compiler would keep a loop over channels, with its sums in memory.
"""
# mypy: ignore-errors
# What numba compiles has numba's types.

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.datamodel import models
from numba.extending import intrinsic, register_model

# Sums may be reordered and fused. Not a number must stay what it is: comparisons with it are relied upon.
FAST = ("contract", "reassoc", "nsz")


class ChannelVector(types.Type):
    """As many floating point numbers as a head has channels."""

    def __init__(self, dtype: types.Float, channels: int) -> None:
        super().__init__(name=f"ChannelVector({dtype}, {channels})")
        self.dtype, self.channels = dtype, channels


@register_model(ChannelVector)
class _ChannelVectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, vector: ChannelVector) -> None:
        element = ir.FloatType() if vector.dtype == types.float32 else ir.DoubleType()
        super().__init__(manager, vector, ir.VectorType(element, vector.channels))


@intrinsic(prefer_literal=True)
def zeros(typing: Any, array: types.Array, channels: types.IntegerLiteral) -> Any:
    """A vector of zeros of the array's type."""
    vector = ChannelVector(array.dtype, channels.literal_value)

    def build(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
        return ir.Constant(context.get_value_type(vector), None)

    return vector(array, channels), build


@intrinsic
def load(typing: Any, array: types.Array, start: types.Integer, like: ChannelVector) -> Any:
    """As many numbers of a flat array as the vector `like` has, from index `start` on."""

    def build(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
        place = _place(context, builder, array, arguments[0], arguments[1], like)
        return builder.load(place, align=array.dtype.bitwidth // 8)

    return like(array, start, like), build


@intrinsic
def store(typing: Any, array: types.Array, start: types.Integer, vector: ChannelVector) -> Any:
    """Write the vector to a flat array, from index `start` on."""

    def build(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
        place = _place(context, builder, array, arguments[0], arguments[1], vector)
        builder.store(arguments[2], place, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.none(array, start, vector), build


@intrinsic
def add_scaled(typing: Any, total: ChannelVector, scale: types.Float, vector: ChannelVector) -> Any:
    """``total + scale · vector``."""

    def build(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
        lanes = context.get_value_type(vector)
        one = builder.insert_element(ir.Constant(lanes, ir.Undefined), arguments[1], _int32(0))
        every = ir.Constant(ir.VectorType(ir.IntType(32), vector.channels), None)
        scales = builder.shuffle_vector(one, ir.Constant(lanes, ir.Undefined), every)
        return builder.fadd(arguments[0], builder.fmul(scales, arguments[2], flags=FAST), flags=FAST)

    return total(total, vector.dtype, vector), build


@intrinsic
def dot(typing: Any, left: ChannelVector, right: ChannelVector) -> Any:
    """The sum of products of two vectors."""

    def build(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
        lanes, element = context.get_value_type(left), context.get_value_type(left.dtype)
        suffix = f"v{left.channels}f{left.dtype.bitwidth}"
        reduce = builder.module.declare_intrinsic(
            f"llvm.vector.reduce.fadd.{suffix}", fnty=ir.FunctionType(element, [element, lanes])
        )
        products = builder.fmul(arguments[0], arguments[1], flags=FAST)
        return builder.call(reduce, [ir.Constant(element, -0.0), products], fastmath=FAST)

    return left.dtype(left, right), build


def _place(
    context: Any, builder: ir.IRBuilder, array: types.Array, value: Any, start: ir.Value, vector: Any
) -> ir.Value:
    data = context.make_array(array)(context, builder, value=value).data
    return builder.bitcast(builder.gep(data, [start]), context.get_value_type(vector).as_pointer())


def _int32(number: int) -> ir.Constant:
    return ir.Constant(ir.IntType(32), number)
