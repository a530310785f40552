//! Common methods of operators that have one input and no expressions of their own.

/// Methods of an `ExecutionPlan` whose only child is in the named field. The operator adds `replace_children` itself.
macro_rules! over_one_input {
    ($input:ident) => {
        fn children(
            &self,
        ) -> Vec<&::std::sync::Arc<dyn ::datafusion::physical_plan::ExecutionPlan>> {
            vec![&self.$input]
        }

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

pub(super) use over_one_input;
