//! Walks through syntax trees.
//!
//! sqlparser compiles its walk once for each type of visitor: a thousand functions each time, which were more than half
//! of this crate. Here all visitors are visited by one walk, behind a pointer. So [`Visit`], [`VisitMut`] and
//! [`visit_expressions`] are taken from here; visitors are sqlparser's.

use std::ops::ControlFlow::{self, Break, Continue};

use datafusion::sql::sqlparser::ast::{
    self, Expr, ObjectName, Query, Select, Statement, TableFactor, ValueWithSpan, Visitor,
    VisitorMut,
};

/// A syntax tree, or a part of one, that visitors can walk through.
pub(crate) trait Visit {
    /// Shows the visitor each part, until it breaks.
    fn visit<V: Visitor>(&self, visitor: &mut V) -> ControlFlow<V::Break>;
}

/// A syntax tree, or a part of one, that visitors can change.
pub(crate) trait VisitMut {
    /// Shows the visitor each part, until it breaks.
    fn visit<V: VisitorMut>(&mut self, visitor: &mut V) -> ControlFlow<V::Break>;
}

/// Calls a function for each expression before its parts, until it breaks.
pub(crate) fn visit_expressions<B, F: FnMut(&Expr) -> ControlFlow<B>>(
    node: &impl Visit,
    each: F,
) -> ControlFlow<B> {
    node.visit(&mut Expressions(each))
}

/// Likewise, without the expressions of subqueries.
pub(crate) fn visit_own_expressions<B, F: FnMut(&Expr) -> ControlFlow<B>>(
    node: &impl Visit,
    each: F,
) -> ControlFlow<B> {
    node.visit(&mut OwnExpressions { each, within: 0 })
}

/// Calls a function for each expression outside of subqueries, after its parts, until it breaks. It may replace the
/// expression.
pub(crate) fn change_own_expressions<B, F: FnMut(&mut Expr) -> ControlFlow<B>>(
    node: &mut impl VisitMut,
    each: F,
) -> ControlFlow<B> {
    node.visit(&mut OwnExpressions { each, within: 0 })
}

struct Expressions<F>(F);

struct OwnExpressions<F> {
    each: F,
    /// The nesting depth of subqueries.
    within: usize,
}

impl<B, F: FnMut(&Expr) -> ControlFlow<B>> Visitor for OwnExpressions<F> {
    type Break = B;

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<B> {
        self.within += 1;
        Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<B> {
        self.within -= 1;
        Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<B> {
        if self.within == 0 { (self.each)(expr) } else { Continue(()) }
    }
}

impl<B, F: FnMut(&mut Expr) -> ControlFlow<B>> VisitorMut for OwnExpressions<F> {
    type Break = B;

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<B> {
        self.within += 1;
        Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<B> {
        self.within -= 1;
        Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<B> {
        if self.within == 0 { (self.each)(expr) } else { Continue(()) }
    }
}

impl<B, F: FnMut(&Expr) -> ControlFlow<B>> Visitor for Expressions<F> {
    type Break = B;

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<B> {
        (self.0)(expr)
    }
}

impl<N: ast::Visit> Visit for N {
    fn visit<V: Visitor>(&self, visitor: &mut V) -> ControlFlow<V::Break> {
        let mut keeping = Keeping { visitor, broken: None };
        let _ = ast::Visit::visit(self, &mut Any(&mut keeping));
        keeping.broken.map_or(Continue(()), Break)
    }
}

impl<N: ast::VisitMut> VisitMut for N {
    fn visit<V: VisitorMut>(&mut self, visitor: &mut V) -> ControlFlow<V::Break> {
        let mut keeping = Keeping { visitor, broken: None };
        let _ = ast::VisitMut::visit(self, &mut AnyMut(&mut keeping));
        keeping.broken.map_or(Continue(()), Break)
    }
}

/// A visitor, and its result if it has stopped.
struct Keeping<'v, V, B> {
    visitor: &'v mut V,
    broken: Option<B>,
}

impl<V, B> Keeping<'_, V, B> {
    fn keep(&mut self, flow: ControlFlow<B>) -> ControlFlow<()> {
        match flow {
            Continue(()) => Continue(()),
            Break(broken) => {
                self.broken = Some(broken);
                Break(())
            }
        }
    }
}

/// A visitor of any type.
struct Any<'v>(&'v mut dyn Visitor<Break = ()>);

/// A visitor of any type that changes what it visits.
struct AnyMut<'v>(&'v mut dyn VisitorMut<Break = ()>);

/// Each method that a visitor has.
macro_rules! each_method {
    ($write:ident $($change:ident)?) => {
        $write! { pre_visit_query(Query $($change)?) }
        $write! { post_visit_query(Query $($change)?) }
        $write! { pre_visit_select(Select $($change)?) }
        $write! { post_visit_select(Select $($change)?) }
        $write! { pre_visit_relation(ObjectName $($change)?) }
        $write! { post_visit_relation(ObjectName $($change)?) }
        $write! { pre_visit_table_factor(TableFactor $($change)?) }
        $write! { post_visit_table_factor(TableFactor $($change)?) }
        $write! { pre_visit_expr(Expr $($change)?) }
        $write! { post_visit_expr(Expr $($change)?) }
        $write! { pre_visit_statement(Statement $($change)?) }
        $write! { post_visit_statement(Statement $($change)?) }
        $write! { pre_visit_value(ValueWithSpan $($change)?) }
        $write! { post_visit_value(ValueWithSpan $($change)?) }
    };
}

macro_rules! pass_on {
    ($method:ident($node:ident)) => {
        fn $method(&mut self, node: &$node) -> ControlFlow<()> {
            self.0.$method(node)
        }
    };
    ($method:ident($node:ident changed)) => {
        fn $method(&mut self, node: &mut $node) -> ControlFlow<()> {
            self.0.$method(node)
        }
    };
}

macro_rules! keep {
    ($method:ident($node:ident)) => {
        fn $method(&mut self, node: &$node) -> ControlFlow<()> {
            let flow = self.visitor.$method(node);
            self.keep(flow)
        }
    };
    ($method:ident($node:ident changed)) => {
        fn $method(&mut self, node: &mut $node) -> ControlFlow<()> {
            let flow = self.visitor.$method(node);
            self.keep(flow)
        }
    };
}

impl Visitor for Any<'_> {
    type Break = ();

    each_method! { pass_on }
}

impl VisitorMut for AnyMut<'_> {
    type Break = ();

    each_method! { pass_on changed }
}

impl<V: Visitor> Visitor for Keeping<'_, V, V::Break> {
    type Break = ();

    each_method! { keep }
}

impl<V: VisitorMut> VisitorMut for Keeping<'_, V, V::Break> {
    type Break = ();

    each_method! { keep changed }
}
