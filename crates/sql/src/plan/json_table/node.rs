//! The plan node of JSON_TABLE.

use std::{
    cmp::Ordering,
    collections::{HashMap, HashSet},
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

use datafusion::{
    arrow::datatypes::FieldRef,
    catalog::Session,
    common::{DFSchema, DFSchemaRef, TableReference, plan_err},
    error::Result,
    logical_expr::{
        EmptyRelation, Expr, LogicalPlan, UserDefinedLogicalNodeCore,
        physical_planning_context::PhysicalPlanningContext,
    },
    physical_expr::create_physical_expr,
    physical_plan::ExecutionPlan,
};

use super::rows::{JsonRowsExec, JsonRowsRequest};
use crate::{
    Error,
    meaning::{external, json_table::JsonTable},
    nodes::TreeNode,
    plan::lazy,
};

/// Qualified fields.
type Made = Vec<(Option<TableReference>, FieldRef)>;

/// Joins each row with the rows of its document.
#[derive(Clone, Debug)]
pub(in crate::plan) struct JsonRows {
    /// The rows with the documents.
    pub input: LogicalPlan,
    table: Arc<JsonTable>,
    /// The added columns.
    made: Made,
    /// The expression of the document.
    pub document: Expr,
    /// Whether it is a LEFT JOIN: rows without document rows are kept, with NULLs.
    keeps: bool,
    /// The join condition of a LEFT JOIN.
    condition: Option<Expr>,
    /// A placeholder for the added columns: rules look for a condition's columns in a node's inputs.
    beside: LogicalPlan,
    /// The input's columns, then the added ones.
    pub schema: DFSchemaRef,
}

impl JsonRows {
    /// An inner join with the rows of each row's document.
    pub(super) fn new(
        input: LogicalPlan,
        table: Arc<JsonTable>,
        made: Made,
        document: Expr,
    ) -> Result<Self> {
        let columns = input.schema().iter();
        let mut fields: Made =
            columns.map(|(table, field)| (table.cloned(), Arc::clone(field))).collect();
        fields.extend(made.iter().cloned());
        // The input's keys repeat here, so they are dropped.
        let metadata = input.schema().metadata().clone();
        let schema = Arc::new(DFSchema::new_with_metadata(fields, metadata)?);
        let beside = DFSchema::new_with_metadata(made.clone(), HashMap::new())?;
        let beside = EmptyRelation { produce_one_row: false, schema: Arc::new(beside) };
        let beside = LogicalPlan::EmptyRelation(beside);
        let (keeps, condition) = (false, None);
        Ok(Self { input, table, made, document, keeps, condition, beside, schema })
    }

    /// The node over another input.
    pub(super) fn over(&self, input: LogicalPlan, document: Expr) -> Result<Self> {
        Self::new(input, Arc::clone(&self.table), self.made.clone(), document)
    }

    /// The node over fewer rows of its input.
    pub(super) fn over_fewer(&self, input: LogicalPlan) -> Result<Self> {
        let made = self.over(input, self.document.clone())?;
        Ok(Self { keeps: self.keeps, condition: self.condition.clone(), ..made })
    }

    /// The definition of the rows.
    pub(super) fn table(&self) -> &JsonTable {
        &self.table
    }

    /// The node as a LEFT JOIN with a condition.
    ///
    /// # Errors
    /// 1235 for a condition with a subquery in it.
    pub(super) fn keeping(self, condition: Option<Expr>) -> Result<Self> {
        let is_query = |expr: &Expr| {
            Ok(matches!(
                expr,
                Expr::ScalarSubquery(_)
                    | Expr::Exists(_)
                    | Expr::InSubquery(_)
                    | Expr::SetComparison(_)
            ))
        };
        if let Some(condition) = &condition
            && condition.exists(is_query)?
        {
            let what = "a query in ON of LEFT JOIN JSON_TABLE";
            return Err(external(Error::unsupported(what)));
        }
        Ok(Self { keeps: true, condition, ..self })
    }

    /// The name of the first added column.
    fn called(&self) -> &str {
        self.made.first().map_or("", |(_, field)| field.name())
    }
}

impl PartialEq for JsonRows {
    fn eq(&self, other: &Self) -> bool {
        // Table names are unique in a statement, so this suffices.
        self.made == other.made
            && self.document == other.document
            && self.keeps == other.keeps
            && self.condition == other.condition
            && self.input == other.input
    }
}

impl Eq for JsonRows {}

impl PartialOrd for JsonRows {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl Hash for JsonRows {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.called().hash(state);
        self.document.hash(state);
        self.keeps.hash(state);
        self.condition.hash(state);
        self.input.hash(state);
    }
}

impl UserDefinedLogicalNodeCore for JsonRows {
    fn name(&self) -> &str {
        "JsonRows"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        [&self.input].into_iter().chain(self.condition.as_ref().map(|_| &self.beside)).collect()
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        [&self.document].into_iter().chain(&self.condition).cloned().collect()
    }

    fn prevent_predicate_push_down_columns(&self) -> HashSet<String> {
        self.made.iter().map(|(_, field)| field.name().clone()).collect()
    }

    fn fmt_for_explain(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "JsonRows: {}", self.document)
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        let mut exprs = exprs.into_iter();
        let (Some(input), Some(document)) = (inputs.into_iter().next(), exprs.next()) else {
            return plan_err!("rows are of the documents of an input");
        };
        let made = self.over(input, document)?;
        Ok(Self { keeps: self.keeps, condition: exprs.next(), ..made })
    }

    fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        let below = self.input.schema();
        let columns = below.fields().len();
        let mut needed: Vec<usize> =
            output_columns.iter().copied().filter(|column| *column < columns).collect();
        for expr in [&self.document].into_iter().chain(&self.condition) {
            let named = expr.column_refs().into_iter();
            needed.extend(named.filter_map(|column| below.maybe_index_of_column(column)));
        }
        needed.sort_unstable();
        needed.dedup();
        let beside = self.condition.as_ref().map(|_| (0..self.made.len()).collect());
        Some([needed].into_iter().chain(beside).collect())
    }
}

/// The physical operator.
pub(in crate::plan) fn planned(
    rows: &JsonRows,
    below: &DFSchema,
    input: Arc<dyn ExecutionPlan>,
    session: &dyn Session,
) -> Result<Arc<dyn ExecutionPlan>> {
    let planning = PhysicalPlanningContext::default();
    let properties = session.execution_props();
    let physical =
        |expr: &Expr, schema: &DFSchema| create_physical_expr(expr, schema, properties, &planning);
    // A rule may have wrapped it in an alias.
    let condition = rows.condition.clone().map(|it| lazy::turned(it.unalias()));
    let condition = condition.map(|it| physical(&it, &rows.schema)).transpose()?;
    let wanted = JsonRowsRequest {
        table: Arc::clone(&rows.table),
        called: rows.called().rsplit_once('.').map_or("", |(name, _)| name).into(),
        document: physical(&rows.document, below)?,
        keeps: rows.keeps,
        condition,
    };
    Ok(Arc::new(JsonRowsExec::new(input, wanted, Arc::clone(rows.schema.inner()))))
}
