"""What an evaluation says, in plain values that can be compared."""

from typing import Any

from dsched.engine.diagnosis import diagnose
from dsched.engine.evaluation import Evaluation
from dsched.framework.table import NodeTable


def said(evaluation: Evaluation, table: NodeTable) -> dict[str, Any]:
    """Everything that may be read of an evaluation, by node name."""
    if evaluation.failure is not None:
        return {"failure": evaluation.failure}
    feasible = evaluation.feasible
    diagnosis = diagnose(evaluation, len(table))
    return {
        "rejection": evaluation.rejection,
        "feasible": {name for name, row in table.index.items() if feasible[row]},
        "totals": {name: int(evaluation.totals[row]) for name, row in table.index.items()},
        "scores": {
            plugin: {name: int(column[row]) for name, row in table.index.items() if feasible[row]}
            for plugin, column in evaluation.score_columns().items()
            if feasible.any()
        },
        "best": [table.names[row] for row in evaluation.best_rows()],
        "statuses": {name: evaluation.status_of(row) for name, row in table.index.items()},
        "rejections": {status: count for status, count in evaluation.rejections() if count},
        "message": diagnosis.message,
        "plugins": diagnosis.unschedulable_plugins,
    }
