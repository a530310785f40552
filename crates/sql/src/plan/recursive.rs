//! Recursive common table expressions. DataFusion requires the initial and the recursive rows to have exactly the same
//! types, so each column is converted to the plainest type of its kind. Iterations are counted and limited.

use std::{
    convert::Infallible,
    fmt,
    hash::{Hash, Hasher},
    ops::ControlFlow,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU64, Ordering},
    },
};

use async_trait::async_trait;
use datafusion::{
    arrow::datatypes::{DataType, Field, FieldRef, SchemaRef},
    catalog::{Session, TableProvider, cte_worktable::CteWorkTable},
    common::{Statistics, exec_err, stats::Precision},
    error::{DataFusionError, Result as PlanResult},
    execution::{SendableRecordBatchStream, TaskContext},
    logical_expr::{
        ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
        Signature, TableType, Volatility,
    },
    physical_plan::{
        DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
        statistics::StatisticsArgs,
    },
    sql::sqlparser::ast::{Query, SelectItem, SetExpr, VisitorMut},
};
use remora_mysql::ErrorCode;

use super::operator::over_one_input;
use crate::{
    Error, SqlType,
    meaning::types::ExprType,
    parse::{VisitMut, function_call},
};

/// The number of rows that one iteration is expected to give to the next. A join then reads them first and looks up their
/// keys in the other table.
const ROWS_OF_AN_ITERATION: usize = 8;

/// The name of the conversion function.
pub(super) const NAME: &str = "recursive_value";

/// The conversion function.
pub(super) fn function() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> =
        LazyLock::new(|| Arc::new(ScalarUDF::from(RecursiveValue::new())));
    Arc::clone(&FUNCTION)
}

/// Wraps the columns of recursive common table expressions in the conversion function.
pub(crate) fn normalise_recursive(query: &mut Query) {
    let ControlFlow::Continue(()) = query.visit(&mut Walk);
}

struct Walk;

impl VisitorMut for Walk {
    type Break = Infallible;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        if let Some(with) = query.with.as_mut().filter(|with| with.recursive) {
            for cte in &mut with.cte_tables {
                if matches!(cte.query.body.as_ref(), SetExpr::SetOperation { .. }) {
                    wrap(&mut cte.query.body);
                }
            }
        }
        ControlFlow::Continue(())
    }
}

fn wrap(body: &mut SetExpr) {
    match body {
        SetExpr::Select(select) => {
            for item in &mut select.projection {
                if let SelectItem::ExprWithAlias { expr, .. } = item {
                    *expr = function_call(NAME, vec![expr.clone()]);
                }
            }
        }
        SetExpr::SetOperation { left, right, .. } => {
            wrap(left);
            wrap(right);
        }
        SetExpr::Query(query) => wrap(&mut query.body),
        _ => {}
    }
}

/// The rows of the last iteration, as the next one reads them.
#[derive(Debug)]
pub(super) struct WorkingTable {
    rows: CteWorkTable,
    most_rounds: u64,
}

impl WorkingTable {
    /// For the expression of this name, which may have `most_rounds` iterations.
    pub(super) fn new(name: &str, schema: SchemaRef, most_rounds: u64) -> Self {
        Self { rows: CteWorkTable::new(name, schema), most_rounds }
    }
}

#[async_trait]
impl TableProvider for WorkingTable {
    fn schema(&self) -> SchemaRef {
        self.rows.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        let rows = self.rows.scan(state, projection, filters, limit).await?;
        let begun = Arc::default();
        Ok(Arc::new(IterationLimitExec { rows, begun, most: self.most_rounds }))
    }
}

/// Reads the last iteration's rows. Error 3636 after too many iterations.
#[derive(Debug)]
struct IterationLimitExec {
    rows: Arc<dyn ExecutionPlan>,
    begun: Arc<AtomicU64>,
    most: u64,
}

impl DisplayAs for IterationLimitExec {
    fn fmt_as(&self, _: DisplayFormatType, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "At most {} rounds", self.most)
    }
}

impl ExecutionPlan for IterationLimitExec {
    fn name(&self) -> &str {
        "Rounds"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.rows.properties()
    }

    over_one_input!(rows);

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        match (children.pop(), children.is_empty()) {
            (Some(rows), true) => {
                Ok(Arc::new(Self { rows, begun: Arc::clone(&self.begun), most: self.most }))
            }
            _ => exec_err!("a round reads one table"),
        }
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> PlanResult<Arc<Statistics>> {
        let unknown = Statistics::new_unknown(&self.schema());
        Ok(Arc::new(unknown.with_num_rows(Precision::Inexact(ROWS_OF_AN_ITERATION))))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> PlanResult<SendableRecordBatchStream> {
        let round = self.begun.fetch_add(1, Ordering::Relaxed) + 1;
        if round > self.most {
            let message = format!(
                "Recursive query aborted after {round} iterations. Try increasing \
                 @@cte_max_recursion_depth to a larger value."
            );
            let error = Error::new(ErrorCode::RecursionDepth, message);
            return Err(DataFusionError::External(Box::new(error)));
        }
        self.rows.execute(partition, context)
    }
}

#[derive(Debug)]
struct RecursiveValue {
    signature: Signature,
}

impl RecursiveValue {
    fn new() -> Self {
        Self { signature: Signature::any(1, Volatility::Immutable) }
    }
}

/// The plainest type of a field's kind.
fn plainest(field: &Field) -> ExprType {
    let kind = ExprType::of_field(field);
    let mut plain = match kind.kind {
        SqlType::Date => ExprType::date(),
        SqlType::DateTime(_) | SqlType::Timestamp(_) => ExprType::date_time(6),
        SqlType::Time(_) => ExprType::time(6),
        SqlType::Json => ExprType::json(),
        _ if kind.is_text() => ExprType::text(u32::MAX, kind.collation),
        _ => ExprType::of_arrow(field.data_type()),
    };
    plain.not_null = false;
    plain
}

impl ScalarUDFImpl for RecursiveValue {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> PlanResult<DataType> {
        exec_err!("{NAME} has the type of its argument")
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> PlanResult<FieldRef> {
        let Some(field) = args.arg_fields.first() else { return exec_err!("{NAME} of nothing") };
        // A truth value has another representation than the integers that follow.
        let held = match field.data_type() {
            DataType::Boolean => DataType::Int64,
            held => held.clone(),
        };
        let plain = plainest(&field.as_ref().clone().with_data_type(held.clone()));
        Ok(Arc::new(plain.field_of(NAME, held)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> PlanResult<ColumnarValue> {
        match args.args.into_iter().next() {
            Some(value) if value.data_type() == DataType::Boolean => {
                value.cast_to(&DataType::Int64, None)
            }
            Some(value) => Ok(value),
            None => exec_err!("{NAME} of nothing"),
        }
    }
}

impl PartialEq for RecursiveValue {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for RecursiveValue {}

impl Hash for RecursiveValue {
    fn hash<H: Hasher>(&self, state: &mut H) {
        NAME.hash(state);
    }
}
