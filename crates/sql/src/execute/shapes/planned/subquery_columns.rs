//! The step that appends the values of correlated subqueries to its rows.

use std::sync::Arc;

use datafusion::{
    arrow::datatypes::{Field, Schema, SchemaRef},
    common::tree_node::Transformed,
    error::Result as PlanResult,
    physical_expr::{ScalarFunctionExpr, expressions::Column},
};

use super::expressions::BatchExpression;
use crate::{nodes::TreeNode, scan::settled::query_of};

/// A step that appends a column for each subquery call.
pub(super) struct SubqueryColumns {
    /// The number of each subquery, and the expressions bound to its slots.
    pub(super) calls: Vec<(usize, Vec<BatchExpression>)>,
    schema: SchemaRef,
}

impl SubqueryColumns {
    /// Replaces the subquery calls in `expressions` by columns, and makes the step that computes those columns. The
    /// step is `None` if there are no such calls. `below` is the input's schema.
    pub fn of(
        expressions: Vec<BatchExpression>,
        below: &SchemaRef,
    ) -> PlanResult<(Option<Self>, Vec<BatchExpression>)> {
        let mut calls = Vec::new();
        let mut fields: Vec<Arc<Field>> = below.fields().iter().cloned().collect();
        let mut replaced = Vec::with_capacity(expressions.len());
        for expression in expressions {
            let new = expression.transform_down(|each| {
                let Some(number) = query_of(&each) else { return Ok(Transformed::no(each)) };
                let args = each.downcast_ref::<ScalarFunctionExpr>().map(ScalarFunctionExpr::args);
                calls.push((number, args.unwrap_or_default().to_vec()));
                let name = format!("query {number}");
                let field = each.return_field(below)?.as_ref().clone().with_name(&name);
                let column: BatchExpression = Arc::new(Column::new(&name, fields.len()));
                fields.push(Arc::new(field.with_nullable(true)));
                Ok(Transformed::complete(column))
            })?;
            replaced.push(new.data);
        }
        let schema = Arc::new(Schema::new(fields));
        Ok(((!calls.is_empty()).then_some(Self { calls, schema }), replaced))
    }

    /// The input's columns, then the appended ones.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The number of input columns.
    pub fn width_below(&self) -> usize {
        self.schema.fields().len() - self.calls.len()
    }

    /// The number of columns, input and appended.
    pub fn width(&self) -> usize {
        self.schema.fields().len()
    }

    /// The expressions that are bound to slots.
    pub fn expressions(&self) -> Vec<BatchExpression> {
        self.calls.iter().flat_map(|(_, args)| args.iter().cloned()).collect()
    }
}
