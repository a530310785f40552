//! Traversals of DataFusion's plans and expressions.
//!
//! DataFusion's traversals are generic, so each use compiles hundreds of functions again. Here the
//! callback is behind a pointer, and each traversal is compiled once. Methods have the names and
//! the behaviour of DataFusion's.

use datafusion::{
    common::tree_node::{self, Transformed, TreeNodeRecursion},
    error::Result,
    logical_expr::{Expr, LogicalPlan},
};

/// A node of a plan or of an expression.
pub(crate) trait TreeNode: Sized {
    /// Visits this node and all nodes below it, parents first.
    fn apply<'n>(
        &'n self,
        each: impl FnMut(&'n Self) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion>;

    /// Visits the direct children.
    fn apply_children<'n>(
        &'n self,
        each: impl FnMut(&'n Self) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion>;

    /// Whether a test holds for this node or any node below it.
    fn exists(&self, test: impl FnMut(&Self) -> Result<bool>) -> Result<bool>;

    /// Rewrites this node and all nodes below it, parents first.
    fn transform_down(
        self,
        change: impl FnMut(Self) -> Result<Transformed<Self>>,
    ) -> Result<Transformed<Self>>;

    /// Rewrites this node and all nodes below it, children first.
    fn transform_up(
        self,
        change: impl FnMut(Self) -> Result<Transformed<Self>>,
    ) -> Result<Transformed<Self>>;

    /// Rewrites the direct children.
    fn map_children(
        self,
        change: impl FnMut(Self) -> Result<Transformed<Self>>,
    ) -> Result<Transformed<Self>>;
}

/// A callback that visits nodes.
type Read<'f, 'n, N> = &'f mut dyn FnMut(&'n N) -> Result<TreeNodeRecursion>;
/// A callback that rewrites nodes.
type Change<'f, N> = &'f mut dyn FnMut(N) -> Result<Transformed<N>>;

impl<N: tree_node::TreeNode> TreeNode for N {
    fn apply<'n>(
        &'n self,
        mut each: impl FnMut(&'n Self) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let each: Read<'_, 'n, Self> = &mut each;
        tree_node::TreeNode::apply(self, each)
    }

    fn apply_children<'n>(
        &'n self,
        mut each: impl FnMut(&'n Self) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let each: Read<'_, 'n, Self> = &mut each;
        tree_node::TreeNode::apply_children(self, each)
    }

    fn exists(&self, mut test: impl FnMut(&Self) -> Result<bool>) -> Result<bool> {
        let test: &mut dyn FnMut(&Self) -> Result<bool> = &mut test;
        tree_node::TreeNode::exists(self, test)
    }

    fn transform_down(
        self,
        mut change: impl FnMut(Self) -> Result<Transformed<Self>>,
    ) -> Result<Transformed<Self>> {
        let change: Change<'_, Self> = &mut change;
        tree_node::TreeNode::transform_down(self, change)
    }

    fn transform_up(
        self,
        mut change: impl FnMut(Self) -> Result<Transformed<Self>>,
    ) -> Result<Transformed<Self>> {
        let change: Change<'_, Self> = &mut change;
        tree_node::TreeNode::transform_up(self, change)
    }

    fn map_children(
        self,
        mut change: impl FnMut(Self) -> Result<Transformed<Self>>,
    ) -> Result<Transformed<Self>> {
        let change: Change<'_, Self> = &mut change;
        tree_node::TreeNode::map_children(self, change)
    }
}

/// A plan, including the plans of its subqueries and the expressions of its nodes.
pub(crate) trait WholePlan: Sized {
    /// `apply_with_subqueries`.
    fn apply_whole(
        &self,
        each: impl FnMut(&Self) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion>;

    /// `transform_up_with_subqueries`.
    fn transform_whole(
        self,
        change: impl FnMut(Self) -> Result<Transformed<Self>>,
    ) -> Result<Transformed<Self>>;

    /// `apply_expressions`: visits the expressions of this node only.
    fn apply_to_expressions(
        &self,
        each: impl FnMut(&Expr) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion>;

    /// `map_expressions`: rewrites the expressions of this node only.
    fn transform_expressions(
        self,
        change: impl FnMut(Expr) -> Result<Transformed<Expr>>,
    ) -> Result<Transformed<Self>>;
}

impl WholePlan for LogicalPlan {
    fn apply_whole(
        &self,
        mut each: impl FnMut(&Self) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let each: &mut dyn FnMut(&Self) -> Result<TreeNodeRecursion> = &mut each;
        self.apply_with_subqueries(each)
    }

    fn transform_whole(
        self,
        mut change: impl FnMut(Self) -> Result<Transformed<Self>>,
    ) -> Result<Transformed<Self>> {
        let change: Change<'_, Self> = &mut change;
        self.transform_up_with_subqueries(change)
    }

    fn apply_to_expressions(
        &self,
        mut each: impl FnMut(&Expr) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let each: &mut dyn FnMut(&Expr) -> Result<TreeNodeRecursion> = &mut each;
        self.apply_expressions(each)
    }

    fn transform_expressions(
        self,
        mut change: impl FnMut(Expr) -> Result<Transformed<Expr>>,
    ) -> Result<Transformed<Self>> {
        let change: Change<'_, Expr> = &mut change;
        self.map_expressions(change)
    }
}
