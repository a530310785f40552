//! A query that gives rows for each outer row.

use datafusion::{
    arrow::{
        array::RecordBatch,
        datatypes::{FieldRef, SchemaRef},
    },
    common::{ScalarValue, config::ConfigOptions},
    error::Result as PlanResult,
    logical_expr::LogicalPlan,
    physical_plan::collect,
};

use super::{Context, Kind, Subquery, outer_columns};

/// The query. Its plan is made once.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::plan) struct RowsQuery(Subquery);

impl RowsQuery {
    /// A query with outer columns.
    pub(in crate::plan) fn new(plan: LogicalPlan, options: &ConfigOptions) -> PlanResult<Self> {
        let outer = outer_columns(&plan)?;
        let context = Context::of_options(options).cloned();
        Ok(Self(Subquery::new(Kind::Rows, plan.into(), outer, context)))
    }

    /// Its rows for these values of the outer columns, in the order of [`outer_columns`].
    pub(in crate::plan) fn rows(
        &self,
        values: &[ScalarValue],
        fields: &[FieldRef],
        options: &ConfigOptions,
    ) -> PlanResult<Vec<RecordBatch>> {
        self.0.run(values, fields, options, collect)
    }

    /// The schema of its rows.
    pub(in crate::plan) fn schema(&self) -> SchemaRef {
        SchemaRef::clone(self.0.plan.schema().inner())
    }
}
