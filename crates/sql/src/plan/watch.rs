//! Stops a running plan soon after its statement was interrupted, and lets other tasks run meanwhile.
//!
//! A task yields its thread only where it waits. A join can produce batches for hours without waiting, and evaluate a
//! condition on pairs of rows for seconds without producing a batch. So streams that read or multiply rows yield after
//! [`SLICE`] and stop with the statement. Join conditions stop too. Planning rules check before each step.

use std::{
    fmt,
    hash::{Hash, Hasher},
    pin::Pin,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context as TaskWaker, Poll},
    time::{Duration, Instant},
};

use datafusion::{
    arrow::{
        array::RecordBatch,
        datatypes::{DataType, Field, FieldRef, SchemaRef},
    },
    common::{config::ConfigOptions, exec_err, tree_node::Transformed},
    error::{DataFusionError, Result as PlanResult},
    execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext},
    logical_expr::{
        ColumnarValue, LogicalPlan, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
        Signature, Volatility,
    },
    physical_plan::{
        DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
    },
};
use futures::{Stream, StreamExt};

use super::operator::over_one_input;
use crate::{
    Error,
    nodes::{TreeNode, WholePlan},
    state::Context,
};

/// How long a task may occupy its thread.
const SLICE: Duration = Duration::from_millis(10);

/// Checks whether a statement must stop.
#[derive(Clone, Debug)]
struct Watch {
    interrupted: Arc<AtomicBool>,
    ended: Arc<AtomicBool>,
}

impl Watch {
    fn is_over(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed) || self.ended.load(Ordering::Relaxed)
    }
}

/// Error 1317 if the statement with these options was interrupted.
pub(super) fn check(options: &ConfigOptions) -> PlanResult<()> {
    match Context::of_options(options).is_some_and(Context::is_over) {
        true => Err(ended()),
        false => Ok(()),
    }
}

/// Error 1317 as an error of DataFusion.
pub(super) fn ended() -> DataFusionError {
    DataFusionError::External(Box::new(Error::interrupted()))
}

/// The plan, watched where rows are read and where they are multiplied.
pub(super) fn watched(
    plan: Arc<dyn ExecutionPlan>,
    context: &Context,
) -> PlanResult<Arc<dyn ExecutionPlan>> {
    let watch =
        Watch { interrupted: Arc::clone(&context.interrupted), ended: Arc::clone(&context.ended) };
    let done = plan.transform_up(|node| {
        let multiplies = node.name().contains("Join")
            || matches!(node.name(), "UnnestSetExec" | "JsonRowsExec" | "LateralRowsExec");
        if !multiplies && !node.children().is_empty() {
            return Ok(Transformed::no(node));
        }
        let watched = Watched { input: node, watch: watch.clone() };
        Ok(Transformed::yes(Arc::new(watched) as Arc<dyn ExecutionPlan>))
    });
    done.map(|done| done.data)
}

/// An operator whose streams are watched.
#[derive(Clone, Debug)]
pub(super) struct Watched {
    input: Arc<dyn ExecutionPlan>,
    watch: Watch,
}

impl DisplayAs for Watched {
    fn fmt_as(&self, _: DisplayFormatType, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Watched")
    }
}

impl ExecutionPlan for Watched {
    fn name(&self) -> &'static str {
        "Watched"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    over_one_input!(input);

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        let watch = self.watch.clone();
        match children.into_iter().next() {
            Some(input) => Ok(Arc::new(Self { input, watch })),
            None => exec_err!("what is watched has an input"),
        }
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> PlanResult<SendableRecordBatchStream> {
        let input = self.input.execute(partition, context)?;
        Ok(Box::pin(WatchedStream { input, watch: self.watch.clone(), since: None }))
    }
}

struct WatchedStream {
    input: SendableRecordBatchStream,
    watch: Watch,
    /// When its task last got the thread.
    since: Option<Instant>,
}

impl Stream for WatchedStream {
    type Item = PlanResult<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, waker: &mut TaskWaker<'_>) -> Poll<Option<Self::Item>> {
        if self.watch.is_over() {
            return Poll::Ready(Some(Err(ended())));
        }
        let now = Instant::now();
        let since = *self.since.get_or_insert(now);
        if now.duration_since(since) > SLICE {
            self.since = None;
            waker.waker().wake_by_ref();
            return Poll::Pending;
        }
        let polled = self.input.poll_next_unpin(waker);
        if polled.is_pending() {
            self.since = None;
        }
        polled
    }
}

impl RecordBatchStream for WatchedStream {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}

/// Wraps the residual conditions of joins, which are evaluated for pairs of rows.
pub(super) fn conditions(plan: LogicalPlan) -> PlanResult<LogicalPlan> {
    let done = plan.transform_whole(|plan| match plan {
        LogicalPlan::Join(mut join) if join.filter.is_some() => {
            join.filter = join.filter.map(|filter| CONDITION.call(vec![filter]));
            Ok(Transformed::yes(LogicalPlan::Join(join)))
        }
        plan => Ok(Transformed::no(plan)),
    });
    done.map(|done| done.data)
}

static CONDITION: LazyLock<ScalarUDF> = LazyLock::new(|| {
    ScalarUDF::from(Condition { signature: Signature::any(1, Volatility::Stable) })
});

/// Its argument; fails once the statement is interrupted.
#[derive(Debug)]
struct Condition {
    signature: Signature,
}

impl PartialEq for Condition {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Condition {}

impl Hash for Condition {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl ScalarUDFImpl for Condition {
    fn name(&self) -> &'static str {
        "watched"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> PlanResult<DataType> {
        Ok(types.first().cloned().unwrap_or(DataType::Boolean))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> PlanResult<FieldRef> {
        let field = args.arg_fields.first().map(Arc::clone);
        Ok(field.unwrap_or_else(|| Arc::new(Field::new(self.name(), DataType::Boolean, true))))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> PlanResult<ColumnarValue> {
        match Context::of_caller() {
            Some(context) if context.is_over() => return Err(ended()),
            Some(_) => {}
            None => check(&args.config_options)?,
        }
        match args.args.into_iter().next() {
            Some(value) => Ok(value),
            None => exec_err!("watched has an argument"),
        }
    }
}
