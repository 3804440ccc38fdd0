"""Variance, standard deviation, covariance, correlation and regression, by sums of deviations from the mean.

Deviations are summed instead of squares, so that a small spread around a large mean is not lost; states merge by
the formula of Chan, Golub and LeVeque.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from arroyo_std.aggregates.function import Aggregate, Rows, States
from arroyo_std.aggregates.groups import Groups

Doubles = npt.NDArray[np.float64]

#: How far a mean may be from values that are all the same, as a part of them.
_ROUNDING = 8 * float(np.finfo(np.float64).eps)


class Moments(Aggregate):
    """What is known of one or two columns: count, means, and sums of products of deviations.

    With two columns a row counts if neither is null.
    """

    is_retractable = True

    def __init__(self, columns: tuple[str, ...], *, function: str) -> None:
        self._columns = columns
        self._function = function
        self.output_type = pa.int64() if function == "regr_count" else pa.float64()
        #: The pairs of columns whose deviations are multiplied.
        self._products = [(left, right) for left in range(len(columns)) for right in range(left, len(columns))]

    def state_fields(self) -> list[tuple[str, pa.DataType]]:
        suffixes = [""] if len(self._columns) == 1 else ["_x", "_y"]
        means = [f"mean{suffix}" for suffix in suffixes]
        products = [f"m2{suffixes[left]}{suffixes[right] if left != right else ''}" for left, right in self._products]
        return [("count", pa.int64()), *((name, pa.float64()) for name in [*means, *products])]

    def partial(self, rows: Rows, groups: Groups) -> States:
        selected, columns, _ = rows.select(groups, self._columns)
        values = [column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False) for column in columns]
        sizes = selected.sizes()
        means = [_sum(selected, each) / np.maximum(sizes, 1) for each in values]
        deviations = [each - mean[selected.codes] for each, mean in zip(values, means, strict=True)]
        products = [_sum(selected, deviations[left] * deviations[right]) for left, right in self._products]
        return _states(sizes, [*means, *products])

    def merge(self, states: States, groups: Groups) -> States:
        count, means, products = self._read(states)
        total = np.zeros(groups.count, dtype=np.int64)
        np.add.at(total, groups.codes, count)
        merged = [_sum(groups, count * mean) / np.maximum(total, 1) for mean in means]
        shifts = [mean - whole[groups.codes] for mean, whole in zip(means, merged, strict=True)]
        summed = [
            _sum(groups, product + count * shifts[left] * shifts[right])
            for product, (left, right) in zip(products, self._products, strict=True)
        ]
        return _states(total, [*merged, *summed])

    def subtract(self, states: States, others: States) -> States:
        count, means, products = self._read(states)
        gone, gone_means, gone_products = self._read(others)
        left_count = count - gone
        size = np.maximum(left_count, 1)
        left_means = [
            np.where(left_count > 0, mean + (mean - away) * gone / size, 0.0)
            for mean, away in zip(means, gone_means, strict=True)
        ]
        left_products = []
        for product, away, (x, y) in zip(products, gone_products, self._products, strict=True):
            kept = left_count * (left_means[x] - means[x]) * (left_means[y] - means[y])
            lost = gone * (gone_means[x] - means[x]) * (gone_means[y] - means[y])
            rest = np.where(left_count > 0, product - away - kept - lost, 0.0)
            # A sum of squares that rounding took below zero is zero.
            left_products.append(np.maximum(rest, 0.0) if x == y else rest)
        return _states(left_count, [*left_means, *left_products])

    def finish(self, states: States) -> pa.Array:
        count, means, products = self._read(states)
        if self._function == "regr_count":
            return pa.array(count, pa.int64())
        if self._function.startswith("regr_"):
            found, is_known = self._regression(count, means, products)
        elif self._function == "corr":
            with np.errstate(divide="ignore", invalid="ignore"):
                found = products[1] / np.sqrt(products[0] * products[2])
            is_known = (count > 1) & _varies(count, means[0], products[0]) & _varies(count, means[1], products[2])
        else:
            taken = 1 if self._function.endswith("_samp") else 0
            is_known = count > taken
            wanted = products[1] if len(self._columns) == 2 else products[0]
            found = wanted / np.maximum(count - taken, 1)
            if self._function.startswith("stddev"):
                found = np.sqrt(np.maximum(found, 0.0))
        return pa.array(found, pa.float64(), mask=~is_known)

    def _regression(
        self, count: npt.NDArray[np.int64], means: list[Doubles], products: list[Doubles]
    ) -> tuple[Doubles, npt.NDArray[np.bool_]]:
        """What is asked of the line through the first column as a function of the second, and where it is known."""
        (mean_y, mean_x), (syy, sxy, sxx) = means, products
        plain = {"regr_avgx": mean_x, "regr_avgy": mean_y, "regr_sxx": sxx, "regr_syy": syy, "regr_sxy": sxy}
        if self._function in plain:
            return plain[self._function], count > 0
        x_varies, y_varies = _varies(count, mean_x, sxx), _varies(count, mean_y, syy)
        slope = sxy / np.where(x_varies, sxx, 1.0)
        if self._function == "regr_slope":
            return slope, x_varies
        if self._function == "regr_intercept":
            return mean_y - slope * mean_x, x_varies
        explained = np.where(y_varies, slope * sxy / np.where(y_varies, syy, 1.0), 1.0)
        return np.minimum(explained, 1.0), x_varies

    def _read(self, states: States) -> tuple[npt.NDArray[np.int64], list[Doubles], list[Doubles]]:
        count, *rest = (state.fill_null(0).to_numpy() for state in states)
        return count, rest[: len(self._columns)], rest[len(self._columns) :]


def _varies(count: npt.NDArray[np.int64], mean: Doubles, squares: Doubles) -> npt.NDArray[np.bool_]:
    """Whether a column has other values than its mean, but for what rounding made of the mean."""
    rounding = _ROUNDING * np.abs(mean)
    varies: npt.NDArray[np.bool_] = squares > count * rounding * rounding
    return varies


def _sum(groups: Groups, values: Doubles) -> Doubles:
    sums: Doubles = np.bincount(groups.codes, weights=values, minlength=groups.count).astype(np.float64, copy=False)
    return sums


def _states(count: npt.NDArray[np.int64], rest: list[Doubles]) -> States:
    return [pa.array(count), *(pa.array(each, pa.float64(), from_pandas=False) for each in rest)]
