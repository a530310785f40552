//! Scans of a table: how DataFusion hands it conditions, and what it is told of the rows.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::{
    arrow::datatypes::SchemaRef,
    catalog::{Session, TableProvider},
    common::{Constraints, DFSchema, Statistics, config::ConfigOptions, stats::Precision},
    error::Result,
    logical_expr::{
        Expr, TableProviderFilterPushDown, TableType,
        physical_planning_context::PhysicalPlanningContext,
    },
    physical_expr::create_physical_expr,
    physical_plan::ExecutionPlan,
};

use super::{
    EngineTable,
    exec::{BatchLayout, ScanExec, ScanShape},
    filter, outer, path_texts,
};
use crate::state::Context;

impl EngineTable {
    /// Error 1191 for MATCH of texts at paths that no text indexes of the table have.
    pub(crate) fn check_paths(&self, column: &str, paths: &[&str]) -> crate::Result<()> {
        path_texts::check(self, column, paths)
    }

    /// A scan of these columns with the pushed-down conditions.
    pub(crate) fn scan_of(
        &self,
        projection: Vec<usize>,
        conditions: &[Expr],
        limit: Option<usize>,
        options: &ConfigOptions,
    ) -> Result<ScanExec> {
        // The scan stops with its statement.
        let reader = self.reader.clone();
        let reader = match Context::of_options(options) {
            Some(context) => reader.with_interrupt(context.interrupt()),
            None => reader,
        };
        let table = Self { reader, ..self.clone() };
        let translated = filter::translate_all(&table, conditions);
        let shape = ScanShape {
            // Rows may only be limited if no filter follows.
            limit: limit.filter(|_| translated.exact && self.overlay.is_none()),
            filter: translated.filter,
            text: translated.text,
            projection,
        };
        let execution = &options.execution;
        let batches = BatchLayout {
            rows: execution.batch_size.get(),
            // With several threads the order is lost anyway.
            in_key_order: execution.target_partitions == 1,
        };
        ScanExec::new(&table, shape, batches)
    }
}

#[async_trait]
impl TableProvider for EngineTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn constraints(&self) -> Option<&Constraints> {
        Some(&self.constraints)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let projection = match projection {
            Some(projection) => projection.clone(),
            None => (0..self.schema.fields().len()).collect(),
        };
        let scan = self.scan_of(projection, filters, limit, session.config_options())?;
        let compared = filters.iter().filter_map(outer::outer_comparisons);
        let compared: Vec<Expr> = compared.collect();
        if compared.is_empty() {
            return Ok(Arc::new(scan));
        }
        let schema = DFSchema::try_from(scan.schema())?;
        let planning = PhysicalPlanningContext::default();
        let compared = compared
            .iter()
            .map(|each| create_physical_expr(each, &schema, session.execution_props(), &planning));
        let compared = compared.collect::<Result<Vec<_>>>()?;
        Ok(Arc::new(scan.with_conditions(compared)))
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(filters.iter().map(|filter| filter::support(self, filter)).collect())
    }

    fn statistics(&self) -> Option<Statistics> {
        let unknown = Statistics::new_unknown(&self.schema);
        let rows = match self.overlay.is_some() || self.is_kept {
            false => Precision::Exact(self.rows),
            true => Precision::Inexact(self.rows),
        };
        Some(unknown.with_num_rows(rows))
    }
}
