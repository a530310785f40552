//! Aggregates: DataFusion's with MySQL's types, and our own where DataFusion has none.

mod best_row;
mod bit_frame;
mod distinct;
mod folds;
mod moving;
mod sliding;

use std::{
    hash::{Hash, Hasher},
    sync::{Arc, LazyLock},
};

use datafusion::{
    arrow::{
        array::{Array, ArrayRef},
        datatypes::{DataType, Field, FieldRef},
    },
    common::{ScalarValue, exec_err},
    error::Result as PlanResult,
    execution::SessionStateDefaults,
    logical_expr::{
        Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, ReversedUDAF, Signature,
        Volatility,
        function::{AccumulatorArgs, StateFieldsArgs},
        utils::AggregateOrderSensitivity,
    },
};

use super::{
    array::{ArrayColumn, Building},
    call::Call,
    function::external,
    types::ExprType,
    value::SqlValue,
};
use crate::SqlType;
use best_row::Head;
pub(super) use best_row::{HEAD, PLACE};
use bit_frame::{BitFrame, of_no_rows};
pub(crate) use distinct::{count_distinct, is_counted};
use folds::Fold;
pub(super) use folds::MAX_CONCAT_BYTES;
use moving::MovingFrame;
use sliding::Sliding;

/// COUNT(DISTINCT …) over a set of integers: the number of distinct integers in all sets.
pub(crate) const COUNT_NUMBERS: &str = "#count_numbers";

/// The digits that the result of SUM has beyond those of its argument.
pub(crate) const SUM_DIGITS: u32 = 22;

/// The aggregate of this lower-case name, if MySQL's differs from DataFusion's.
pub(crate) fn aggregate_function(name: &str) -> Option<Arc<AggregateUDF>> {
    if let Some(head) = Head::named(name) {
        return Some(Arc::new(AggregateUDF::from(head)));
    }
    let kind = match name {
        "sum" => Kind::Plain("sum"),
        "stddev_pop" => Kind::Plain("stddev_pop"),
        "stddev" => Kind::Plain("stddev"),
        "var_pop" => Kind::Plain("var_pop"),
        "var" => Kind::Plain("var"),
        "min" => Kind::Extreme("min", false),
        "max" => Kind::Extreme("max", true),
        "group_concat" => Kind::Fold("group_concat"),
        "json_arrayagg" => Kind::Fold("json_arrayagg"),
        "json_objectagg" => Kind::Fold("json_objectagg"),
        "any_value" => Kind::Fold("any_value"),
        COUNT_NUMBERS => Kind::Fold(COUNT_NUMBERS),
        "bit_and" => Kind::Fold("bit_and"),
        "bit_or" => Kind::Fold("bit_or"),
        "bit_xor" => Kind::Fold("bit_xor"),
        _ => return None,
    };
    Some(Arc::new(AggregateUDF::from(Aggregate::new(kind))))
}

/// DataFusion's own aggregate of this name.
fn plain(name: &str) -> PlanResult<Arc<AggregateUDF>> {
    static ALL: LazyLock<Vec<Arc<AggregateUDF>>> =
        LazyLock::new(SessionStateDefaults::default_aggregate_functions);
    match ALL.iter().find(|each| each.name() == name) {
        Some(found) => Ok(Arc::clone(found)),
        None => exec_err!("there is no {name}"),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    /// DataFusion's aggregate, with the type of the argument.
    Plain(&'static str),
    /// MIN or MAX: DataFusion's, except for types that are compared by sort keys.
    Extreme(&'static str, bool),
    /// Our own implementation.
    Fold(&'static str),
}

#[derive(Debug)]
struct Aggregate {
    kind: Kind,
    signature: Signature,
}

impl Aggregate {
    fn new(kind: Kind) -> Self {
        Self { kind, signature: Signature::user_defined(Volatility::Stable) }
    }

    fn own_name(&self) -> &'static str {
        match self.kind {
            Kind::Plain(name) | Kind::Extreme(name, _) | Kind::Fold(name) => name,
        }
    }

    /// DataFusion's aggregate, if it can do the work for arguments of this type.
    fn delegate(&self, field: Option<&FieldRef>) -> Option<PlanResult<Arc<AggregateUDF>>> {
        match self.kind {
            Kind::Plain(name) => Some(plain(name)),
            Kind::Extreme(name, _) => {
                let by_key = field.is_none_or(|field| sorts_by_key(field));
                (!by_key).then(|| plain(name))
            }
            Kind::Fold(_) => None,
        }
    }
}

fn sorts_by_key(field: &Field) -> bool {
    let kind = ExprType::of_field(field);
    matches!(field.data_type(), DataType::Null)
        || (kind.arrow() == DataType::Utf8View && field.data_type() != &DataType::Boolean)
}

impl PartialEq for Aggregate {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind
    }
}

impl Eq for Aggregate {}

impl Hash for Aggregate {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.kind.hash(state);
    }
}

impl AggregateUDFImpl for Aggregate {
    fn name(&self) -> &str {
        self.own_name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> PlanResult<DataType> {
        exec_err!("the type of {} depends on fields", self.own_name())
    }

    fn coerce_types(&self, types: &[DataType]) -> PlanResult<Vec<DataType>> {
        Ok(types.to_vec())
    }

    fn return_field(&self, fields: &[FieldRef]) -> PlanResult<FieldRef> {
        let Some(first) = fields.first() else { return exec_err!("no argument") };
        let kind = ExprType { not_null: false, width: None, ..ExprType::of_field(first) };
        let field = match self.kind {
            Kind::Fold(name) => folds::result(name, &kind).field(name),
            Kind::Plain(name) | Kind::Extreme(name, _) => {
                let words = matches!(kind.kind, SqlType::Enum | SqlType::Set);
                let kind = match words {
                    true => ExprType { kind: SqlType::Char, members: None, ..kind },
                    false => kind,
                };
                kind.field_of(name, first.data_type().clone())
            }
        };
        Ok(Arc::new(field.with_nullable(true)))
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> PlanResult<Box<dyn Accumulator>> {
        if let Some(inner) = self.delegate(args.expr_fields.first()) {
            return inner?.accumulator(args);
        }
        let types = args.expr_fields.iter().map(|field| ExprType::of_field(field)).collect();
        let result = ExprType::of_field(&args.return_field);
        let fold = folds::new(self.own_name(), args.is_distinct);
        let held = args.return_field.data_type().clone();
        let state = folds::state_type(self.own_name(), &args.return_field);
        Ok(Box::new(Folding { fold, types, result, held, state }))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> PlanResult<Vec<FieldRef>> {
        match self.delegate(args.input_fields.first()) {
            Some(inner) => inner?.state_fields(args),
            None => {
                let kind = folds::state_type(self.own_name(), &args.return_field);
                let name = format!("{}[state]", args.name);
                Ok(vec![Arc::new(kind.as_ref().clone().with_name(name).with_nullable(true))])
            }
        }
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        match self.delegate(args.expr_fields.first()) {
            Some(Ok(inner)) => inner.groups_accumulator_supported(args),
            _ => false,
        }
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> PlanResult<Box<dyn GroupsAccumulator>> {
        match self.delegate(args.expr_fields.first()) {
            Some(inner) => inner?.create_groups_accumulator(args),
            None => exec_err!("{} has no groups", self.own_name()),
        }
    }

    fn create_sliding_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> PlanResult<Box<dyn Accumulator>> {
        match self.delegate(args.expr_fields.first()) {
            Some(inner) => {
                let inner = inner?;
                if !matches!(self.kind, Kind::Plain(_)) || !MovingFrame::is_for(&args) {
                    return inner.create_sliding_accumulator(args);
                }
                let again =
                    AccumulatorArgs { return_field: Arc::clone(&args.return_field), ..args };
                let running = inner.create_sliding_accumulator(again)?;
                Ok(Box::new(MovingFrame::of(&inner, &args, running)))
            }
            None => match (self.kind, args.expr_fields.first()) {
                (Kind::Extreme(_, greatest), Some(of)) => {
                    let kind = ExprType::of_field(of);
                    let result = ExprType::of_field(&args.return_field);
                    let held = args.return_field.data_type().clone();
                    Ok(Box::new(Sliding::new(greatest, kind, result, held)))
                }
                (Kind::Fold(name), Some(of)) if of_no_rows(name).is_some() && !args.is_distinct => {
                    Ok(Box::new(BitFrame::new(name, ExprType::of_field(of))))
                }
                _ => self.accumulator(args),
            },
        }
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn default_value(&self, held: &DataType) -> PlanResult<ScalarValue> {
        match of_no_rows(self.own_name()) {
            Some(bits) => Ok(ScalarValue::UInt64(Some(bits))),
            None => ScalarValue::try_from(held),
        }
    }
}

/// A [`Fold`] as DataFusion's accumulator.
struct Folding {
    fold: Box<dyn Fold>,
    types: Vec<ExprType>,
    result: ExprType,
    held: DataType,
    state: FieldRef,
}

impl std::fmt::Debug for Folding {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Folding")
    }
}

impl Folding {
    fn built(
        &self,
        value: &SqlValue<'_>,
        held: &DataType,
        kind: &ExprType,
    ) -> PlanResult<ScalarValue> {
        let call = Call { context: None, types: &self.types, result: kind, kept: None };
        let mut built = Building::new(held, kind);
        built.push(value, &call);
        ScalarValue::try_from_array(&built.finish(), 0)
    }

    fn feed(&mut self, arrays: &[ArrayRef], types: &[ExprType], merging: bool) -> PlanResult<()> {
        let columns =
            arrays.iter().zip(types).map(|(array, kind)| ArrayColumn::new(array, kind.clone()));
        let mut columns: Vec<ArrayColumn> = columns.collect::<PlanResult<_>>()?;
        // GROUP_CONCAT reads numbers as texts.
        if self.result.is_string() {
            columns.iter_mut().for_each(ArrayColumn::read_as_text);
        }
        let rows = arrays.first().map_or(0, |array| array.len());
        let call = Call { context: None, types, result: &self.result, kept: None };
        for row in 0..rows {
            let values: Vec<SqlValue<'_>> = columns.iter().map(|column| column.get(row)).collect();
            let fed = match merging {
                true => self.fold.merge(&values, &call),
                false => self.fold.add(&values, &call),
            };
            fed.map_err(external)?;
        }
        Ok(())
    }
}

impl Accumulator for Folding {
    fn update_batch(&mut self, values: &[ArrayRef]) -> PlanResult<()> {
        let types = self.types.clone();
        self.feed(values, &types, false)
    }

    fn evaluate(&mut self) -> PlanResult<ScalarValue> {
        self.built(&self.fold.value(), &self.held, &self.result)
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.fold.bytes()
    }

    fn state(&mut self) -> PlanResult<Vec<ScalarValue>> {
        let kind = ExprType::of_field(&self.state);
        Ok(vec![self.built(&self.fold.state(), self.state.data_type(), &kind)?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> PlanResult<()> {
        let types = [ExprType::of_field(&self.state)];
        self.feed(states, &types, true)
    }
}
