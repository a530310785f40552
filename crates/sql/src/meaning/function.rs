//! A MySQL function as a DataFusion function: it derives its type from the arguments' types and
//! computes its value row by row.

use std::{
    hash::{BuildHasher, Hash, Hasher},
    sync::Arc,
};

use datafusion::{
    arrow::datatypes::{DataType, FieldRef},
    common::{ScalarValue, exec_err, tree_node::TreeNodeRecursion},
    error::{DataFusionError, Result as PlanResult},
    logical_expr::{
        ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature,
        TypeSignature, Volatility,
    },
};
use remora_mysql::{Collation, ErrorCode};
use rustc_hash::FxBuildHasher;

use super::{
    array::{ArrayColumn, Building},
    call::{Call, KeptForCall, TypeContext},
    collation,
    formatted::{takes_as_bytes, takes_texts, types_taken},
    kernels::KernelCall,
    types::ExprType,
    value::SqlValue,
};
use crate::{Error, Result, nodes::TreeNode, state::Context};

/// Computes the value for a row.
pub(crate) type Eval = for<'a> fn(&Call<'_>, &[SqlValue<'a>]) -> Result<SqlValue<'a>>;
/// Derives the result type.
pub(crate) type TypeRule = fn(&TypeContext<'_>) -> Result<ExprType>;
/// Replaces a call by an equivalent DataFusion expression, if there is one.
pub(crate) type Expand = fn(&[Expr], &TypeContext<'_>) -> Result<Option<Expr>>;

/// The definition of a function.
pub(crate) struct Definition {
    /// Its name in lower case, or an operator's sign.
    pub name: &'static str,
    /// The fewest arguments.
    pub fewest: usize,
    /// The most arguments.
    pub most: usize,
    /// Derives the result type.
    pub typing: TypeRule,
    /// Computes the value.
    pub eval: Eval,
    /// Replaces the call by an equivalent DataFusion expression.
    pub expand: Option<Expand>,
    /// Whether it gives another value for every row, even with equal arguments.
    pub volatile: bool,
    /// Whether a cached plan may call it.
    pub caching: Caching,
    /// Whether the result is represented as an Arrow Boolean.
    pub is_truth: bool,
}

/// Whether a plan that is kept for further statements may call a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caching {
    /// Yes: its value depends on its arguments, and on session settings that are the same for all runs of a plan
    /// (`PlanSettings` of cached plans).
    ByArguments,
    /// Yes, and each run computes it anew: its value is the same throughout a statement, but the next statement may get
    /// another one, such as NOW() or LAST_INSERT_ID(). It reads the session by `Call::session`.
    PerStatement,
    /// Only if the argument with this number, which says how long the result is, is a small literal.
    ByLength(usize),
    /// No: it is volatile, or may take so long or give so much that it must not run in a connection's thread.
    Never,
}

/// Constant texts longer than this are not folded during planning: rules copy the plan, and nested
/// functions could double the text at each level.
const MAX_FOLDED_BYTES: u64 = 64 << 10;

/// Any number of arguments.
pub(crate) const MANY: usize = usize::MAX;

impl Definition {
    /// A function whose value depends only on its arguments.
    pub(crate) const fn new(
        name: &'static str,
        fewest: usize,
        most: usize,
        typing: TypeRule,
        eval: Eval,
    ) -> Self {
        let (expand, volatile, is_truth) = (None, false, false);
        let caching = Caching::ByArguments;
        Self { name, fewest, most, typing, eval, expand, volatile, caching, is_truth }
    }

    /// A function that returns true, false or NULL.
    pub(crate) const fn truth(name: &'static str, fewest: usize, most: usize, eval: Eval) -> Self {
        Self { is_truth: true, ..Self::new(name, fewest, most, truth_type, eval) }
    }

    /// With a replacement by an equivalent expression.
    pub(crate) const fn expanding(self, expand: Expand) -> Self {
        Self { expand: Some(expand), ..self }
    }

    /// Marks it as volatile.
    pub(crate) const fn volatile(self) -> Self {
        Self { volatile: true, caching: Caching::Never, ..self }
    }

    /// Says whether cached plans may call it.
    pub(crate) const fn cached(self, caching: Caching) -> Self {
        Self { caching, ..self }
    }

    /// The Arrow type of its values.
    pub(super) fn held(&self, kind: &ExprType) -> DataType {
        if self.is_truth { DataType::Boolean } else { kind.arrow() }
    }
}

fn truth_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType { not_null: typing.all_present(), ..ExprType::truth() })
}

/// The session settings that decide result types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Dialect {
    /// The collation of literals.
    pub collation: Collation,
    /// The digits that a division adds to the scale.
    pub division_digits: u8,
}

impl Default for Dialect {
    fn default() -> Self {
        Self { collation: Collation::UTF8MB4_0900_AI_CI, division_digits: 4 }
    }
}

impl Dialect {
    /// The session's.
    pub(crate) fn of(context: &Context) -> Self {
        Self { collation: context.collation, division_digits: context.division_digits }
    }
}

/// A definition wrapped for DataFusion.
pub(crate) struct Function {
    definition: &'static Definition,
    dialect: Dialect,
    signature: Signature,
}

impl Function {
    pub(super) fn new(definition: &'static Definition, dialect: Dialect) -> Self {
        let volatility =
            if definition.volatile { Volatility::Volatile } else { Volatility::Stable };
        let any = vec![TypeSignature::UserDefined, TypeSignature::Nullary];
        let signature = Signature::one_of(any, volatility);
        Self { definition, dialect, signature }
    }

    pub(crate) fn definition(&self) -> &'static Definition {
        self.definition
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// 1038: the texts of a batch exceed the limit of a statement.
    fn too_large(&self, most_bytes: u64) -> Error {
        let name = self.definition.name;
        let message =
            format!("the texts that {name} makes of some rows take more than {most_bytes} bytes");
        Error::new(ErrorCode::OutOfMemory, message)
    }

    fn kind(&self, types: &[ExprType], scalars: &[Option<&ScalarValue>]) -> Result<ExprType> {
        let Dialect { collation, division_digits } = self.dialect;
        (self.definition.typing)(&TypeContext { types, scalars, collation, division_digits })
    }
}

/// The types of arguments, from their fields or, for bare literals, from their values.
pub(crate) fn argument_types(
    fields: &[FieldRef],
    scalars: &[Option<&ScalarValue>],
    collation: Collation,
) -> Vec<ExprType> {
    let typed = |(index, field): (usize, &FieldRef)| {
        let told = field.metadata().contains_key(super::types::METADATA_KEY);
        match scalars.get(index).copied().flatten() {
            Some(literal) if !told => ExprType::of_literal(literal, collation),
            _ => ExprType::of_field(field),
        }
    };
    fields.iter().enumerate().map(typed).collect()
}

impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        self.definition.name == other.definition.name && self.dialect == other.dialect
    }
}

impl Eq for Function {}

impl Hash for Function {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.definition.name.hash(state);
    }
}

impl std::fmt::Debug for Function {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.definition.name)
    }
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        self.definition.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> PlanResult<DataType> {
        exec_err!("the type of {} depends on fields", self.definition.name)
    }

    fn coerce_types(&self, types: &[DataType]) -> PlanResult<Vec<DataType>> {
        Ok(types.to_vec())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> PlanResult<FieldRef> {
        let collation = self.dialect.collation;
        let types = argument_types(args.arg_fields, args.scalar_arguments, collation);
        let types = types_taken(self.definition.name, types);
        let mut kind = self.kind(&types, args.scalar_arguments).map_err(external)?;
        if self.definition.name != "typed" {
            kind.width = None;
        }
        let held = self.definition.held(&kind);
        // Warnings and limits can turn any value into NULL.
        let field = kind.field_of(self.definition.name, held).with_nullable(true);
        Ok(Arc::new(field))
    }

    fn schema_name(&self, args: &[Expr]) -> PlanResult<String> {
        let name = self.definition.name;
        if is_short(args) {
            let names = args.iter().map(|arg| arg.schema_name().to_string());
            return Ok(format!("{name}({})", names.collect::<Vec<_>>().join(",")));
        }
        // Planning asks again and again for the names of all nested expressions, which is most of
        // the cost of planning a deep one.
        Ok(format!("{name}(#{:016x})", FxBuildHasher.hash_one(args)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> PlanResult<ColumnarValue> {
        if self.definition.name == "typed" {
            return told(args);
        }
        let scalars: Vec<Option<&ScalarValue>> = args.args.iter().map(as_scalar).collect();
        let held_types = argument_types(&args.arg_fields, &scalars, self.dialect.collation);
        let types = types_taken(self.definition.name, held_types.clone());
        let kind = ExprType::of_field(&args.return_field);
        let caller = Context::of_caller();
        let context = caller.as_deref().or_else(|| Context::of_options(&args.config_options));
        let kept = KeptForCall::default();
        let call = Call { context, types: &types, result: &kind, kept: Some(&kept) };
        let constant = args.args.iter().all(|arg| as_scalar(arg).is_some());
        let once = constant && !self.definition.volatile;
        let rows = if once { 1 } else { args.number_rows };
        let held = args.return_field.data_type();
        let (name, args_of, result) = (self.definition.name, &args.args, &kind);
        let asked = KernelCall { name, args: args_of, types: &types, rows, result, held };
        if !once && let Some(array) = asked.evaluate() {
            return Ok(ColumnarValue::Array(array));
        }
        let mut columns = read(&args.args, &held_types)?;
        let texts = takes_texts(self.definition.name);
        for (place, ((column, _), held)) in columns.iter_mut().zip(&held_types).enumerate() {
            if texts {
                column.read_as_text();
            }
            if takes_as_bytes(self.definition.name, place, held, &kind) {
                column.read_as_bytes();
            }
        }
        let mut built = Building::new(held, &kind);
        let mut values: Vec<SqlValue<'_>> = Vec::with_capacity(columns.len());
        let most_bytes = context.map_or(u64::MAX, |context| context.max_batch_bytes);
        let mut bytes = 0_u64;
        for row in 0..rows {
            if context.is_some_and(Context::is_over) {
                return Err(external(Error::interrupted()));
            }
            values.clear();
            values.extend(
                columns.iter().map(|(column, single)| column.get(if *single { 0 } else { row })),
            );
            let mut value = (self.definition.eval)(&call, &values).map_err(external)?;
            if let (true, SqlValue::Bytes(bytes)) = (call.result.is_text(), &value) {
                let text = collation::text_of_bytes(bytes, call.result.collation);
                value = SqlValue::text(text.map_err(external)?);
            }
            if value.text_bytes() as u64 > call.longest_text().max(MAX_TEXT_BYTES) {
                value = call.too_long(self.definition.name);
            }
            bytes = bytes.saturating_add(value.text_bytes() as u64);
            if bytes > most_bytes {
                return Err(external(self.too_large(most_bytes)));
            }
            built.push(&value, &call);
        }
        if bytes > MAX_FOLDED_BYTES && context.is_some_and(|context| context.planning.is_on()) {
            return exec_err!("{} makes a long text, which no plan holds", self.definition.name);
        }
        let array = built.finish();
        if once {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?));
        }
        Ok(ColumnarValue::Array(array))
    }
}

/// The longest text of any function, however large `max_allowed_packet` is, since nested calls
/// could double it again and again.
const MAX_TEXT_BYTES: u64 = 64 << 20;

/// Whether an expression is named by its text rather than a hash: it is small, or it contains
/// subqueries, which change during planning.
fn is_short(args: &[Expr]) -> bool {
    const MOST: usize = 12;
    let (mut count, mut has_queries) = (0, false);
    for arg in args {
        // The closure never fails.
        let _ = arg.apply(|each| {
            has_queries |= matches!(
                each,
                Expr::ScalarSubquery(_)
                    | Expr::Exists(_)
                    | Expr::InSubquery(_)
                    | Expr::SetComparison(_)
            );
            count += 1;
            Ok(if has_queries { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        });
    }
    count <= MOST || has_queries
}

/// The value unchanged, since only its field differs; cast if its representation differs from the
/// field's.
fn told(args: ScalarFunctionArgs) -> PlanResult<ColumnarValue> {
    let held = args.return_field.data_type();
    match args.args.into_iter().next() {
        Some(value) if value.data_type() == *held => Ok(value),
        Some(value) => value.cast_to(held, None),
        None => exec_err!("typed has an argument"),
    }
}

fn as_scalar(value: &ColumnarValue) -> Option<&ScalarValue> {
    match value {
        ColumnarValue::Scalar(scalar) => Some(scalar),
        ColumnarValue::Array(_) => None,
    }
}

/// The argument columns, and whether each is constant.
fn read(args: &[ColumnarValue], types: &[ExprType]) -> PlanResult<Vec<(ArrayColumn, bool)>> {
    let column = |(arg, kind): (&ColumnarValue, &ExprType)| match arg {
        ColumnarValue::Array(array) => Ok((ArrayColumn::new(array, kind.clone())?, false)),
        ColumnarValue::Scalar(scalar) => {
            Ok((ArrayColumn::new(&scalar.to_array()?, kind.clone())?, true))
        }
    };
    args.iter().zip(types).map(column).collect()
}

/// Wraps our error in DataFusion's.
pub(crate) fn external(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}
