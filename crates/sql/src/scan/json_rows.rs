//! The placeholder table of JSON_TABLE in a plan, until its operator replaces it.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::{
    arrow::datatypes::{Schema, SchemaRef},
    catalog::{Session, TableProvider},
    common::not_impl_err,
    error::Result as PlanResult,
    logical_expr::{Expr, TableType},
    physical_plan::ExecutionPlan,
};
use remora_mysql::Collation;

use crate::meaning::{json_table::JsonTable, types::ExprType};

/// A JSON_TABLE over the documents of rows.
#[derive(Debug)]
pub(crate) struct JsonSource {
    table: Arc<JsonTable>,
    schema: SchemaRef,
}

impl JsonSource {
    /// A JSON_TABLE with text columns, and this name in plans.
    pub(crate) fn new(table: Arc<JsonTable>, name: &str) -> Self {
        let schema = Self::schema_of(&table, name);
        Self { table, schema }
    }

    /// A schema with a text column for each column. The names are unique in the statement.
    pub(crate) fn schema_of(table: &JsonTable, name: &str) -> SchemaRef {
        let kind = ExprType::text(u32::MAX, Collation::UTF8MB4_0900_AI_CI);
        let fields = (0..table.columns().len()).map(|at| kind.field(&Self::column(name, at)));
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }

    /// The name of a column in plans.
    pub(crate) fn column(name: &str, at: usize) -> String {
        format!("{name}.{at}")
    }

    /// The JSON_TABLE definition.
    pub(crate) fn table(&self) -> &Arc<JsonTable> {
        &self.table
    }
}

#[async_trait]
impl TableProvider for JsonSource {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        _projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        not_impl_err!("JSON_TABLE in this place")
    }
}
