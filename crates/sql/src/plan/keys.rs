//! Hides functional dependencies from joins. DataFusion treats the group keys of a subquery as a unique key, and above
//! a join it still removes GROUP BY and ORDER BY columns that depend on this key, although the join may repeat it. A
//! column that is the result of a function is not a key.

use std::sync::{Arc, LazyLock};

use datafusion::{
    arrow::datatypes::{DataType, FieldRef},
    common::{
        config::ConfigOptions,
        exec_err,
        tree_node::{Transformed, TreeNodeRecursion},
    },
    error::Result,
    logical_expr::{
        ColumnarValue, Expr, LogicalPlan, Projection, ReturnFieldArgs, ScalarFunctionArgs,
        ScalarUDF, ScalarUDFImpl, Signature, Volatility, expr::ScalarFunction,
    },
    optimizer::AnalyzerRule,
    physical_expr::{PhysicalExpr, ScalarFunctionExpr},
};

use crate::nodes::{TreeNode, WholePlan};

/// The rule.
#[derive(Debug)]
pub(super) struct SidesWithoutKeys;

impl AnalyzerRule for SidesWithoutKeys {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        if !has_keyed_sides(&plan)? {
            return Ok(plan);
        }
        let done = plan.transform_whole(|plan| match plan {
            LogicalPlan::Join(mut join) => {
                let (left, right) = (without_key(&join.left)?, without_key(&join.right)?);
                if left.is_none() && right.is_none() {
                    return Ok(Transformed::no(LogicalPlan::Join(join)));
                }
                join.left = left.unwrap_or(join.left);
                join.right = right.unwrap_or(join.right);
                LogicalPlan::Join(join).recompute_schema().map(Transformed::yes)
            }
            // The node above needs the original schema.
            plan => plan.recompute_schema().map(Transformed::no),
        })?;
        Ok(done.data)
    }

    fn name(&self) -> &str {
        "sides_without_keys"
    }
}

/// Whether an input of a join has a key.
fn has_keyed_sides(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_whole(|plan| {
        if let LogicalPlan::Join(join) = plan {
            let is_keyed = |side: &LogicalPlan| !side.schema().functional_dependencies().is_empty();
            found |= is_keyed(&join.left) || is_keyed(&join.right);
        }
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// The plan with its columns wrapped in a function, if it has a key.
fn without_key(plan: &Arc<LogicalPlan>) -> Result<Option<Arc<LogicalPlan>>> {
    let schema = plan.schema();
    if schema.functional_dependencies().is_empty() {
        return Ok(None);
    }
    let columns = schema.columns().into_iter().map(|column| {
        let (relation, name) = (column.relation.clone(), column.name.clone());
        same(Expr::Column(column)).alias_qualified(relation, name)
    });
    let plan = Projection::try_new(columns.collect(), Arc::clone(plan))?;
    Ok(Some(Arc::new(LogicalPlan::Projection(plan))))
}

/// The expression as the result of a function that returns it.
pub(super) fn same(expr: Expr) -> Expr {
    static SAME: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
        Arc::new(ScalarUDF::from(Same { signature: Signature::any(1, Volatility::Immutable) }))
    });
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&SAME), vec![expr]))
}

/// A physical expression without that function, which has no effect once the plan is made.
pub(crate) fn without_same(of: &Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
    let done = Arc::clone(of).transform_up(|each| {
        let call = each.downcast_ref::<ScalarFunctionExpr>();
        Ok(match call.map(|call| (call.name(), call.args())) {
            Some((SAME, [of])) => Transformed::yes(Arc::clone(of)),
            _ => Transformed::no(each),
        })
    })?;
    Ok(done.data)
}

const SAME: &str = "same";

/// The identity function.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Same {
    signature: Signature,
}

impl ScalarUDFImpl for Same {
    fn name(&self) -> &str {
        SAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        types.first().cloned().map_or_else(|| exec_err!("same of nothing"), Ok)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        args.arg_fields.first().cloned().map_or_else(|| exec_err!("same of nothing"), Ok)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        args.args.into_iter().next().map_or_else(|| exec_err!("same of nothing"), Ok)
    }
}
