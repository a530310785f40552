//! Converts a DataFusion plan to a tree of scans, joins and steps.

use std::sync::Arc;

use datafusion::{
    arrow::datatypes::{DataType, SchemaRef},
    common::{JoinSide, JoinType, NullEquality, tree_node::TreeNodeRecursion},
    error::Result as PlanResult,
    physical_expr::{ScalarFunctionExpr, expressions::Column},
    physical_plan::{
        ExecutionPlan,
        aggregates::AggregateExec,
        coop::CooperativeExec,
        filter::FilterExec,
        joins::{HashJoinExec, utils::JoinFilter},
        limit::GlobalLimitExec,
        placeholder_row::PlaceholderRowExec,
        projection::{ProjectionExec, ProjectionExpr},
        sorts::sort::SortExec,
        union::UnionExec,
    },
};
use remora_engine::SortKey;

use super::{
    expressions::{BatchExpression, ScanOrigin},
    group::GroupStep,
    steps::{BatchStep, sort_keys},
    subquery_columns::SubqueryColumns,
    window::WindowStep,
};
use crate::{
    nodes::TreeNode,
    plan::{
        CorrelatedQuery, KeptPlan, RecursionExec, RoundExec, RunConstant, is_sequential_union,
        without_same,
    },
    scan::{
        CachedScan, ScanExec,
        settled::{self, conditions_of},
    },
};

/// The deepest nesting of an expression. Expressions are evaluated on the stack of a connection.
const MAX_DEPTH: usize = 32;
/// The most scans of a plan.
const MAX_SCANS: usize = 16;

/// A plan as scans, joins and steps.
pub(super) struct Tree {
    pub scans: Vec<CachedScan>,
    pub root: PlanNode,
    /// The constants that each run computes first.
    pub settled: Vec<RunConstant<PlanNode>>,
    /// The correlated subqueries, by number.
    pub queries: Vec<CorrelatedQuery<PlanNode>>,
    /// Whether any functions are called.
    pub calls: bool,
    /// The number of its recursive expressions.
    pub recursions: usize,
}

/// A source of rows and the steps applied to them.
pub(super) struct PlanNode {
    pub of: RowSource,
    pub steps: Vec<BatchStep>,
    /// The rows that it needs of its scan, if these are the first ones in an order that the engine has.
    pub first: Option<FirstRows>,
}

/// The ORDER BY and LIMIT of a part of a plan that reads one scan.
pub(super) struct FirstRows {
    /// The order in engine terms.
    pub order: Vec<SortKey>,
    /// The number of rows that the LIMIT ends with, those of an OFFSET included.
    pub count: usize,
    /// The place of the sort among the steps; the cut follows it.
    pub sort: usize,
}

/// A source of rows.
pub(super) enum RowSource {
    Scan(usize),
    Join(Box<Join>),
    Union(Union),
    Recursion(Box<CachedRecursion>),
    /// The rows of a round of the recursion with this number.
    Round(usize),
    /// One row without columns, for a SELECT of constants.
    OneRow,
}

/// Concatenated rows of several parts (UNION ALL).
pub(super) struct Union {
    pub parts: Vec<PlanNode>,
    pub schema: SchemaRef,
}

/// A recursive expression.
pub(super) struct CachedRecursion {
    /// The rows that it begins with.
    pub first: PlanNode,
    /// The blocks that read its rows.
    pub blocks: Vec<PlanNode>,
    /// What tells rows apart, if equal ones are left out.
    pub keys: Option<Arc<[BatchExpression]>>,
    pub schema: SchemaRef,
    /// Its number among the recursions of the plan, by which its blocks name its rows.
    pub number: usize,
}

/// A join of two parts.
pub(super) struct Join {
    pub left: PlanNode,
    pub right: PlanNode,
    pub kind: JoinType,
    /// Pairs of a left and a right expression that must be equal.
    pub on: Vec<(BatchExpression, BatchExpression)>,
    pub filter: Option<Residual>,
    /// The number of columns of each side.
    pub widths: (usize, usize),
    /// The joined columns that are kept.
    pub projection: Option<Vec<usize>>,
    /// The result columns.
    pub schema: SchemaRef,
}

/// A join condition that is not an equality.
pub(super) struct Residual {
    pub condition: BatchExpression,
    /// The side and the index of each column that it reads.
    pub columns: Vec<(JoinSide, usize)>,
    pub schema: SchemaRef,
}

/// A side of a join.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PlanSide {
    Left,
    Right,
}

/// Converts a plan; `None` if it has other operators than these.
pub(super) fn tree(of: &KeptPlan) -> Option<Tree> {
    let mut reading = Reading { scans: Vec::new(), recursions: Vec::new(), calls: false };
    let root = reading.part(&of.plan)?;
    let settled = of.settled.iter().map(|each| match each {
        RunConstant::Literal(number) => Some(RunConstant::Literal(*number)),
        RunConstant::Constant(constant) => Some(RunConstant::Constant(Arc::clone(constant))),
        RunConstant::Query(query, is_exists) => {
            Some(RunConstant::Query(reading.part(query)?, *is_exists))
        }
    });
    let settled = settled.collect::<Option<_>>()?;
    let queries = of.queries.iter().map(|CorrelatedQuery { plan, is_exists, slots }| {
        let (plan, slots) = (reading.part(plan)?, slots.clone());
        Some(CorrelatedQuery { plan, is_exists: *is_exists, slots })
    });
    let queries = queries.collect::<Option<_>>()?;
    let Reading { scans, recursions, calls } = reading;
    Some(Tree { scans, root, settled, queries, calls, recursions: recursions.len() })
}

struct Reading {
    scans: Vec<CachedScan>,
    /// The names of recursive expressions, by number.
    recursions: Vec<String>,
    calls: bool,
}

impl Reading {
    fn part(&mut self, plan: &Arc<dyn ExecutionPlan>) -> Option<PlanNode> {
        let any: &dyn std::any::Any = plan.as_ref();
        if let Some(scan) = any.downcast_ref::<ScanExec>() {
            self.scans.push(scan.few()?);
            let of = RowSource::Scan(self.scans.len() - 1);
            return (self.scans.len() <= MAX_SCANS).then_some(PlanNode::all_of(of));
        }
        if let Some(join) = any.downcast_ref::<HashJoinExec>() {
            let of = RowSource::Join(Box::new(self.join(join)?));
            return Some(PlanNode::all_of(of));
        }
        if let Some(recursion) = any.downcast_ref::<RecursionExec>() {
            let of = RowSource::Recursion(Box::new(self.recursion(recursion)?));
            return Some(PlanNode::all_of(of));
        }
        if let Some(round) = any.downcast_ref::<RoundExec>() {
            return self.round(round);
        }
        if any.is::<PlaceholderRowExec>() {
            return Some(PlanNode::all_of(RowSource::OneRow));
        }
        if let Some(union) = any.downcast_ref::<UnionExec>() {
            let parts = union.inputs().iter().map(|input| self.part(input));
            let (parts, schema) = (parts.collect::<Option<_>>()?, plan.schema());
            return Some(PlanNode::all_of(RowSource::Union(Union { parts, schema })));
        }
        let below = plan.children();
        let [below] = below.as_slice() else { return None };
        let mut part = self.part(below)?;
        if let (RowSource::Scan(scan), true, Some(filter)) =
            (&part.of, part.steps.is_empty(), any.downcast_ref::<FilterExec>())
        {
            // Only narrows down the scan: the filter is still evaluated.
            self.scans.get_mut(*scan)?.seek(filter.predicate());
        }
        for step in all_steps(plan)? {
            for expression in &step.expressions() {
                self.examine(expression)?;
            }
            if !part.steps.last().is_some_and(|last| last.sorts_as(&step)) {
                part.steps.push(step);
            }
        }
        Some(part)
    }

    fn recursion(&mut self, recursion: &RecursionExec) -> Option<CachedRecursion> {
        let (number, schema) = (self.recursions.len(), recursion.schema());
        self.recursions.push(recursion.named().to_owned());
        for key in recursion.keys().iter().flat_map(|keys| keys.iter()) {
            self.examine(key)?;
            // +0 and -0 are equal, but differ in the row format.
            if key.data_type(&schema).ok()?.is_floating() {
                return None;
            }
        }
        let first = self.part(recursion.first())?;
        let blocks = recursion.blocks().iter().map(|block| self.part(block));
        let (blocks, keys) = (blocks.collect::<Option<_>>()?, recursion.keys().cloned());
        Some(CachedRecursion { first, blocks, keys, schema, number })
    }

    fn round(&self, round: &RoundExec) -> Option<PlanNode> {
        let (name, kept) = round.parts();
        let number = self.recursions.iter().rposition(|recursion| recursion == name)?;
        let schema = round.schema();
        let column = |(at, place): (usize, &usize)| {
            Arc::new(Column::new(schema.field(at).name(), *place)) as BatchExpression
        };
        let project = |kept: &[usize]| {
            let columns = kept.iter().enumerate().map(column).collect();
            BatchStep::Project(columns, Arc::clone(&schema))
        };
        let steps = kept.map(project).into_iter().collect();
        Some(PlanNode { steps, ..PlanNode::all_of(RowSource::Round(number)) })
    }

    fn join(&mut self, join: &HashJoinExec) -> Option<Join> {
        let is_plain = join.null_equality() == NullEquality::NullEqualsNothing
            && !join.null_aware
            && join.fetch().is_none()
            && *join.join_type() != JoinType::Full;
        if !is_plain {
            return None;
        }
        let (left, right) = (self.part(join.left())?, self.part(join.right())?);
        let (of_left, of_right) = (join.left().schema(), join.right().schema());
        for (one, other) in join.on() {
            self.examine(one)?;
            self.examine(other)?;
            let kind = one.data_type(&of_left).ok()?;
            // +0 and -0 are equal, but differ in the row format.
            let is_float = matches!(kind, DataType::Float32 | DataType::Float64);
            if is_float || other.data_type(&of_right).ok()? != kind {
                return None;
            }
        }
        let filter = match join.filter() {
            None => None,
            Some(filter) => {
                self.examine(filter.expression())?;
                Some(residual(filter))
            }
        };
        Some(Join {
            left,
            right,
            kind: *join.join_type(),
            on: join.on().to_vec(),
            filter,
            widths: (of_left.fields().len(), of_right.fields().len()),
            projection: join.projection.as_deref().map(<[usize]>::to_vec),
            schema: join.schema(),
        })
    }

    /// Notes whether an expression calls functions; `None` if it is too deep, or reads more than its row.
    fn examine(&mut self, expression: &BatchExpression) -> Option<()> {
        fn depth(expression: &BatchExpression) -> usize {
            let below = expression.children().into_iter().map(depth).max();
            1 + below.unwrap_or(0)
        }
        if depth(expression) > MAX_DEPTH {
            return None;
        }
        let mut is_of_a_row = true;
        expression
            .apply(|each| {
                if let Some(call) = each.downcast_ref::<ScalarFunctionExpr>() {
                    self.calls = true;
                    // These would read the snapshot of the statement that was planned.
                    is_of_a_row &=
                        !matches!(call.name(), "subquery" | "outer_value" | settled::QUERY_NAME);
                }
                Ok(TreeNodeRecursion::Continue)
            })
            .ok()?;
        is_of_a_row.then_some(())
    }
}

/// The steps of an operator with one input, with a step for the subqueries in its expressions before each; `None` if
/// the operator is not supported.
fn all_steps(of: &Arc<dyn ExecutionPlan>) -> Option<Vec<BatchStep>> {
    let children = of.children();
    let [below] = children.as_slice() else { return None };
    // All steps work on the input's columns, except that a projection may follow.
    let steps = steps(of)?.into_iter().map(|step| with_queries(step, &below.schema()));
    let steps = steps.collect::<Option<Vec<_>>>()?;
    Some(steps.into_iter().flatten().collect())
}

/// The steps of an operator with one input; `None` if it is not supported.
fn steps(of: &Arc<dyn ExecutionPlan>) -> Option<Vec<BatchStep>> {
    let plan: &dyn std::any::Any = of.as_ref();
    if plan.is::<CooperativeExec>() || is_sequential_union(of.as_ref()) {
        return Some(Vec::new());
    }
    if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        let mut steps = vec![BatchStep::Filter(without_same(filter.predicate()).ok()?)];
        if let Some(places) = filter.projection().as_deref() {
            let (within, schema) = (filter.input().schema(), filter.schema());
            let column = |place: &usize| {
                Arc::new(Column::new(within.field(*place).name(), *place)) as BatchExpression
            };
            steps.push(BatchStep::Project(places.iter().map(column).collect(), schema));
        }
        return filter.fetch().is_none().then_some(steps);
    }
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let expressions = projection.expr().iter();
        let expressions = expressions.map(|each: &ProjectionExpr| without_same(&each.expr));
        let expressions = expressions.collect::<PlanResult<_>>().ok()?;
        return Some(vec![BatchStep::Project(expressions, projection.schema())]);
    }
    if let Some(sort) = plan.downcast_ref::<SortExec>() {
        let sorted = BatchStep::Sort(sort_keys(sort.expr()));
        let cut = sort.fetch().map(|fetch| BatchStep::Cut(0..fetch));
        return Some(std::iter::once(sorted).chain(cut).collect());
    }
    if let Some(limit) = plan.downcast_ref::<GlobalLimitExec>() {
        let end = limit.fetch().map_or(usize::MAX, |fetch| limit.skip().saturating_add(fetch));
        return Some(vec![BatchStep::Cut(limit.skip()..end)]);
    }
    if let Some(window) = WindowStep::of(of) {
        let sort = window.order().map(|order| BatchStep::Sort(sort_keys(order)));
        return Some(sort.into_iter().chain([BatchStep::Window(window)]).collect());
    }
    let aggregate = plan.downcast_ref::<AggregateExec>()?;
    Some(vec![BatchStep::Group(GroupStep::of(aggregate)?)])
}

/// The step, preceded by steps that run the subqueries in its expressions. `below` is its input's schema.
fn with_queries(step: BatchStep, below: &SchemaRef) -> Option<Vec<BatchStep>> {
    match step {
        BatchStep::Project(expressions, schema) => {
            let (beside, expressions) = SubqueryColumns::of(expressions, below).ok()?;
            let before = beside.map(BatchStep::SubqueryColumns).into_iter();
            Some(before.chain([BatchStep::Project(expressions, schema)]).collect())
        }
        BatchStep::Filter(predicate) => {
            let (mut made, mut within) = (Vec::new(), Arc::clone(below));
            for condition in conditions_of(&predicate) {
                let (beside, condition) = SubqueryColumns::of(vec![condition], &within).ok()?;
                if let Some(beside) = beside {
                    within = Arc::clone(beside.schema());
                    made.push(BatchStep::SubqueryColumns(beside));
                }
                made.extend(condition.into_iter().map(BatchStep::Filter));
            }
            if made.iter().all(|step| matches!(step, BatchStep::Filter(_))) {
                return Some(vec![BatchStep::Filter(predicate)]);
            }
            let fields = below.fields().iter().enumerate();
            let columns = fields.map(|(at, field)| Arc::new(Column::new(field.name(), at)) as _);
            made.push(BatchStep::Project(columns.collect(), Arc::clone(below)));
            Some(made)
        }
        step => Some(vec![step]),
    }
}

fn residual(filter: &JoinFilter) -> Residual {
    let columns = filter.column_indices().iter().map(|column| (column.side, column.index));
    Residual {
        condition: Arc::clone(filter.expression()),
        columns: columns.collect(),
        schema: Arc::clone(filter.schema()),
    }
}

impl Tree {
    /// The number of columns of each scan.
    pub(super) fn widths(&self) -> Vec<usize> {
        self.scans.iter().map(|scan| scan.schema().fields().len()).collect()
    }

    /// Calls `visit` with each part that reads a scan.
    pub(super) fn each_of_scan(
        &mut self,
        visit: &mut dyn FnMut(&mut PlanNode, usize, &[CachedScan]),
    ) {
        let queries = self.queries.iter_mut().map(|query| &mut query.plan);
        let settled = self.settled.iter_mut().filter_map(|constant| match constant {
            RunConstant::Query(part, _) => Some(part),
            RunConstant::Literal(_) | RunConstant::Constant(_) => None,
        });
        for part in std::iter::once(&mut self.root).chain(settled).chain(queries) {
            part.each_of_scan(&mut |part, scan| visit(part, scan, &self.scans));
        }
    }
}

impl PlanNode {
    /// All rows of a source.
    pub(super) fn all_of(of: RowSource) -> Self {
        Self { of, steps: Vec::new(), first: None }
    }

    fn each_of_scan(&mut self, visit: &mut dyn FnMut(&mut Self, usize)) {
        match &mut self.of {
            RowSource::Scan(scan) => {
                let scan = *scan;
                visit(self, scan);
            }
            RowSource::Join(join) => {
                join.left.each_of_scan(visit);
                join.right.each_of_scan(visit);
            }
            RowSource::Union(union) => {
                union.parts.iter_mut().for_each(|part| part.each_of_scan(visit));
            }
            RowSource::Recursion(of) => {
                of.first.each_of_scan(visit);
                of.blocks.iter_mut().for_each(|block| block.each_of_scan(visit));
            }
            RowSource::Round(_) | RowSource::OneRow => {}
        }
    }

    /// The most rows that its steps leave.
    pub(super) fn most_rows(&self) -> u64 {
        let cuts = self.steps.iter().filter_map(|step| match step {
            BatchStep::Cut(places) => Some(places.len() as u64),
            _ => None,
        });
        cuts.min().unwrap_or(u64::MAX)
    }

    /// The scan column of each result column, given the number of columns of each scan.
    pub(super) fn origins(&self, widths: &[usize]) -> Vec<ScanOrigin> {
        let mut origins = self.of.origins(widths);
        for step in &self.steps {
            origins = step.origins(origins);
        }
        origins
    }

    /// Whether the result rows follow the order of this scan's rows, if the scan is read first, and none are aggregated
    /// or cut.
    pub(super) fn follows(&self, scan: usize) -> bool {
        self.steps.iter().all(BatchStep::is_by_row) && self.of.follows(scan)
    }

    /// The same expression over the input of the steps; `None` if it cannot be expressed there.
    pub(super) fn below(&self, expression: &BatchExpression) -> Option<BatchExpression> {
        let mut expression = Arc::clone(expression);
        for step in self.steps.iter().rev() {
            expression = moved(&expression, &|place| step.of_column(place))?;
        }
        Some(expression)
    }
}

impl RowSource {
    /// The scans below.
    pub(super) fn scans(&self) -> Vec<usize> {
        match self {
            Self::Scan(scan) => vec![*scan],
            Self::Join(join) => [join.left.of.scans(), join.right.of.scans()].concat(),
            Self::Union(union) => union.parts.iter().flat_map(|part| part.of.scans()).collect(),
            Self::Recursion(of) => {
                let parts = std::iter::once(&of.first).chain(&of.blocks);
                parts.flat_map(|part| part.of.scans()).collect()
            }
            Self::OneRow | Self::Round(_) => Vec::new(),
        }
    }

    /// The scan column of each column, given the number of columns of each scan.
    pub(super) fn origins(&self, widths: &[usize]) -> Vec<ScanOrigin> {
        match self {
            Self::Scan(scan) => {
                let count = widths.get(*scan).copied().unwrap_or(0);
                (0..count).map(|place| Some((*scan, place))).collect()
            }
            Self::Join(join) => {
                let (left, right) = (join.left.origins(widths), join.right.origins(widths));
                let origin = |place| {
                    let (side, place) = join.side_of(place)?;
                    let origins = if side == PlanSide::Left { &left } else { &right };
                    origins.get(place).copied().flatten()
                };
                (0..join.schema.fields().len()).map(origin).collect()
            }
            Self::Union(union) => vec![None; union.schema.fields().len()],
            Self::Recursion(recursion) => vec![None; recursion.schema.fields().len()],
            // A column behind the last one has no origin either.
            Self::OneRow | Self::Round(_) => Vec::new(),
        }
    }

    /// Whether the rows follow the order of this scan's rows, if the scan is read first.
    pub(super) fn follows(&self, scan: usize) -> bool {
        match self {
            Self::Scan(own) => *own == scan,
            Self::Join(join) => match join.kept() {
                Some(PlanSide::Left) => join.left.follows(scan),
                Some(PlanSide::Right) => join.right.follows(scan),
                None => join.left.follows(scan) || join.right.follows(scan),
            },
            Self::Union(_) | Self::Recursion(_) | Self::Round(_) | Self::OneRow => false,
        }
    }
}

impl Join {
    /// The side that must be read first; `None` if it may be either.
    pub(super) fn kept(&self) -> Option<PlanSide> {
        use JoinType::{Left, LeftAnti, LeftMark, Right, RightAnti, RightMark};
        match self.kind {
            Left | LeftAnti | LeftMark => Some(PlanSide::Left),
            Right | RightAnti | RightMark => Some(PlanSide::Right),
            _ => None,
        }
    }

    /// The side, and the index there, of a result column; `None` if it comes from neither side.
    pub(super) fn side_of(&self, place: usize) -> Option<(PlanSide, usize)> {
        use JoinType::{LeftAnti, LeftMark, LeftSemi, RightAnti, RightMark, RightSemi};
        let place = match &self.projection {
            Some(projection) => *projection.get(place)?,
            None => place,
        };
        let (left, right) = self.widths;
        match self.kind {
            LeftSemi | LeftAnti | LeftMark => (place < left).then_some((PlanSide::Left, place)),
            RightSemi | RightAnti | RightMark => {
                (place < right).then_some((PlanSide::Right, place))
            }
            _ if place < left => Some((PlanSide::Left, place)),
            _ => Some((PlanSide::Right, place - left)),
        }
    }
}

/// Replaces the column of an expression that is a column or a collation key of one; `None` for other expressions.
pub(super) fn moved(
    expression: &BatchExpression,
    to: &dyn Fn(usize) -> Option<BatchExpression>,
) -> Option<BatchExpression> {
    if let Some(column) = expression.downcast_ref::<Column>() {
        return to(column.index());
    }
    let call = expression.downcast_ref::<ScalarFunctionExpr>()?;
    let ("collation_key", [of, number]) = (call.name(), call.args()) else { return None };
    let of = to(of.downcast_ref::<Column>()?.index())?;
    of.downcast_ref::<Column>()?;
    Arc::clone(expression).with_new_children(vec![of, Arc::clone(number)]).ok()
}
