//! FORMAT: numbers in the style of a locale.

use datafusion::logical_expr::{Expr, expr::ScalarFunction};
use remora_mysql::ErrorCode;

use super::super::{
    call::{Call, TypeContext},
    decimal::Dec,
    function::{Definition, Dialect},
    types::ExprType,
    value::SqlValue,
};
use crate::Result;

/// FORMAT with a constant unknown locale, which warns once for a statement.
const IN_UNKNOWN_LOCALE: &str = "#format";

pub(super) const FUNCTIONS: &[Definition] = &[
    Definition::new("format", 2, 3, format_type, |call, args| {
        format(args, call, |locale| call.warn(ErrorCode::UnknownLocale, || unknown(locale)))
    })
    .expanding(expand_format),
    Definition::new(IN_UNKNOWN_LOCALE, 3, 3, format_type, |call, args| {
        format(args, call, |locale| call.warn_once(ErrorCode::UnknownLocale, || unknown(locale)))
    }),
];

/// The style of a locale's numbers.
struct Style {
    point: char,
    /// The separator of digit groups, if any.
    between: Option<char>,
    /// The digits of each group except the last one, which has three.
    group: usize,
    /// The names of MySQL's locales with this style, separated by spaces.
    locales: &'static str,
}

/// The style of en_US.
static DEFAULT: Style = Style { point: '.', between: Some(','), group: 3, locales: "" };

/// The styles of MySQL's other locales.
static STYLES: [Style; 9] = [
    Style {
        locales: "ar_AE ar_BH ar_DZ ar_EG ar_IN ar_IQ ar_JO ar_KW ar_LB ar_LY ar_MA ar_OM ar_QA ar_SD ar_SY ar_TN ar_YE \
                  en_AU en_CA en_GB en_NZ en_PH en_US en_ZA en_ZW es_DO es_GT es_HN es_MX es_NI es_PA es_PE es_PR es_SV \
                  es_US gu_IN he_IL hi_IN ja_JP ko_KR ms_MY th_TH ur_PK zh_CN zh_HK zh_TW",
        point: '.',
        between: Some(','),
        group: 3,
    },
    Style { point: '.', between: None, group: 3, locales: "ar_SA sr_RS sr_YU" },
    Style {
        point: ',',
        between: Some('.'),
        group: 3,
        locales: "be_BY da_DK de_BE de_DE de_LU es_AR es_BO es_CL es_CO es_EC es_ES es_PY es_UY es_VE fo_FO hu_HU id_ID \
                  is_IS lt_LT mn_MN nb_NO no_NO ro_RO ru_UA sq_AL tr_TR uk_UA vi_VN",
    },
    // MySQL separates Bulgarian digit groups by a zero byte.
    Style { point: ',', between: Some('\0'), group: 3, locales: "bg_BG" },
    Style {
        point: ',',
        between: None,
        group: 3,
        locales: "ca_ES de_AT el_GR eu_ES fr_BE fr_CA fr_CH fr_FR fr_LU gl_ES hr_HR it_IT nl_BE nl_NL pl_PL pt_BR pt_PT \
                  sl_SI",
    },
    Style {
        point: ',',
        between: Some(' '),
        group: 3,
        locales: "cs_CZ es_CR et_EE fi_FI lv_LV mk_MK ru_RU sk_SK sv_FI sv_SE",
    },
    Style { point: '.', between: Some('\''), group: 3, locales: "de_CH" },
    Style { point: '.', between: Some(','), group: 2, locales: "en_IN ta_IN te_IN" },
    Style { point: ',', between: Some('\''), group: 3, locales: "it_CH rm_CH" },
];

fn format_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::text(41, typing.collation))
}

fn unknown(locale: &str) -> String {
    format!("Unknown locale: '{locale}'")
}

fn expand_format(args: &[Expr], typing: &TypeContext<'_>) -> Result<Option<Expr>> {
    let is_constant = typing.scalars.get(2).copied().flatten().is_some();
    if !is_constant || style_named(typing.constant_text(2).unwrap_or(NO_LOCALE)).is_some() {
        return Ok(None);
    }
    let dialect = Dialect { collation: typing.collation, division_digits: typing.division_digits };
    let udf = super::function(IN_UNKNOWN_LOCALE, dialect);
    Ok(udf.map(|udf| Expr::ScalarFunction(ScalarFunction::new_udf(udf, args.to_vec()))))
}

/// How NULL as a locale appears in the warning.
const NO_LOCALE: &str = "NULL";

fn style_named(name: &str) -> Option<&'static Style> {
    STYLES.iter().find(|style| {
        style.locales.split_whitespace().any(|known| known.eq_ignore_ascii_case(name))
    })
}

/// The style of a locale. For an unknown one calls `warn` and returns the style of en_US.
fn style_of(locale: Option<&SqlValue<'_>>, warn: impl FnOnce(&str)) -> &'static Style {
    let Some(locale) = locale else { return &DEFAULT };
    let name = locale.string().unwrap_or_else(|| NO_LOCALE.into());
    style_named(&name).unwrap_or_else(|| {
        warn(&name);
        &DEFAULT
    })
}

fn format<'a>(
    args: &[SqlValue<'a>],
    call: &Call<'_>,
    warn: impl FnOnce(&str),
) -> Result<SqlValue<'a>> {
    let [number, digits, rest @ ..] = args else { return Ok(SqlValue::Null) };
    if number.is_null() || digits.is_null() {
        return Ok(SqlValue::Null);
    }
    let style = style_of(rest.first(), warn);
    let digits = u8::try_from(digits.count(call).clamp(0, 30)).unwrap_or(0);
    let exact = match number {
        SqlValue::Double(number) => Dec::from_double(*number),
        value if matches!(value, SqlValue::Text(_)) => Dec::from_double(value.double(call)),
        value => value.decimal(call),
    };
    let rounded = exact.rescaled(digits).unwrap_or(exact).to_string();
    let (sign, rest) = match rounded.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", rounded.as_str()),
    };
    let (whole, fraction) = rest.split_once('.').map_or((rest, None), |(w, f)| (w, Some(f)));
    let mut out = String::from(sign);
    for (index, digit) in whole.chars().enumerate() {
        // The last group has three digits.
        let left = whole.len() - index;
        let begins = left >= 3 && (left - 3) % style.group == 0;
        if index > 0
            && begins
            && let Some(between) = style.between
        {
            out.push(between);
        }
        out.push(digit);
    }
    if let Some(fraction) = fraction {
        out.push(style.point);
        out.push_str(fraction);
    }
    Ok(SqlValue::text(out))
}
