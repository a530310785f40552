//! GEODIST: the distance between two points on earth, as Sphinx computes it.

use super::super::{call::Call, function::Definition, types::ExprType, value::SqlValue};
use crate::Result;

/// The radius of the sphere for distant points, and for `method=haversine`, in metres.
const FAR_RADIUS_M: f64 = 6_371_000.0;
const SPHERE_RADIUS_M: f64 = 6_384_000.0;
/// Points whose longitudes differ by less count as near, and the earth as flat between them.
const NEAR_DEGREES: f64 = 13.0;

/// Arguments: two points, whether they are in degrees, metres per unit, and whether to use the
/// sphere always.
pub(super) const FUNCTIONS: &[Definition] =
    &[Definition::new("geodist", 4, 7, |_| Ok(ExprType::double()), geodist)];

fn geodist<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    if args.iter().any(SqlValue::is_null) {
        return Ok(SqlValue::Null);
    }
    let number = |place: usize| args.get(place).map(|value| value.double(call));
    let said = |place: usize| number(place).is_some_and(|value| value != 0.0);
    let [Some(lat1), Some(lon1), Some(lat2), Some(lon2)] = [0, 1, 2, 3].map(number) else {
        return Ok(SqlValue::Null);
    };
    let (degrees, sphere) = (said(4), said(6));
    let place = |value: f64| if degrees { value } else { value.to_degrees() };
    let (from, to) = ((place(lat1), place(lon1)), (place(lat2), place(lon2)));
    let metres = if sphere { on_sphere(from, to, SPHERE_RADIUS_M) } else { adaptive(from, to) };
    let distance = metres / number(5).unwrap_or(1.0);
    Ok(if distance.is_finite() { SqlValue::Double(distance) } else { SqlValue::Null })
}

/// The distance in metres between points in degrees. Near points are measured on a flattened
/// ellipsoid.
fn adaptive(from: (f64, f64), to: (f64, f64)) -> f64 {
    let north = (from.0 - to.0).abs();
    let turned = (from.1 - to.1).abs() % 360.0;
    let east = if turned > 180.0 { 360.0 - turned } else { turned };
    if east >= NEAR_DEGREES {
        return on_sphere(from, to, FAR_RADIUS_M);
    }
    // Metres per degree at the middle latitude.
    let middle = ((from.0 + to.0) / 2.0).to_radians();
    let of_latitude = 111_132.09 - 566.05 * (2.0 * middle).cos() + 1.20 * (4.0 * middle).cos();
    let of_longitude =
        111_415.13 * middle.cos() - 94.55 * (3.0 * middle).cos() + 0.12 * (5.0 * middle).cos();
    (of_latitude * north).hypot(of_longitude * east)
}

/// The distance on a sphere, by the haversine formula.
fn on_sphere(from: (f64, f64), to: (f64, f64), radius: f64) -> f64 {
    let half = |a: f64, b: f64| ((a - b) / 2.0).to_radians().sin().powi(2);
    let share = half(from.0, to.0)
        + from.0.to_radians().cos() * to.0.to_radians().cos() * half(from.1, to.1);
    2.0 * radius * share.sqrt().min(1.0).asin()
}
