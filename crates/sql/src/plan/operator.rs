//! What operators with one input have in common.

use std::sync::Arc;

use datafusion::{
    arrow::datatypes::SchemaRef,
    physical_expr::EquivalenceProperties,
    physical_plan::{ExecutionPlan, ExecutionPlanProperties, PlanProperties},
};

/// The properties of an operator that makes rows of this schema of each row of its input, in no order.
pub(super) fn properties_over(
    input: &Arc<dyn ExecutionPlan>,
    schema: SchemaRef,
) -> Arc<PlanProperties> {
    Arc::new(PlanProperties::new(
        EquivalenceProperties::new(schema),
        input.output_partitioning().clone(),
        input.pipeline_behavior(),
        input.boundedness(),
    ))
}

/// Methods of an `ExecutionPlan` whose only child is in the named field. The operator adds `replace_children` itself.
macro_rules! one_child {
    ($input:ident) => {
        fn children(
            &self,
        ) -> Vec<&::std::sync::Arc<dyn ::datafusion::physical_plan::ExecutionPlan>> {
            vec![&self.$input]
        }

        fn with_new_children(
            self: ::std::sync::Arc<Self>,
            children: Vec<::std::sync::Arc<dyn ::datafusion::physical_plan::ExecutionPlan>>,
        ) -> ::datafusion::error::Result<
            ::std::sync::Arc<dyn ::datafusion::physical_plan::ExecutionPlan>,
        > {
            let mode = ::datafusion::physical_plan::ChildrenPropertiesMode::Recompute;
            let options = ::datafusion::physical_plan::ReplaceChildrenOptions::new(mode);
            self.replace_children(children, options)
        }
    };
}

/// [`one_child`] of an operator without expressions of its own.
macro_rules! over_one_input {
    ($input:ident) => {
        $crate::plan::operator::one_child!($input);

        fn apply_expressions(
            &self,
            _: &mut dyn FnMut(
                &::std::sync::Arc<dyn ::datafusion::physical_expr::PhysicalExpr>,
            ) -> ::datafusion::error::Result<
                ::datafusion::common::tree_node::TreeNodeRecursion,
            >,
        ) -> ::datafusion::error::Result<::datafusion::common::tree_node::TreeNodeRecursion> {
            Ok(::datafusion::common::tree_node::TreeNodeRecursion::Continue)
        }
    };
}

pub(super) use one_child;
pub(super) use over_one_input;
