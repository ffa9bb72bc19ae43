//! Stand-in until the plan reader lands.

use serde::Deserialize;
use serde::de::IgnoredAny;

/// A plan as the log writes it.
#[derive(Debug)]
pub struct PlanInfo<'a>(std::marker::PhantomData<&'a ()>);

impl<'de: 'a, 'a> Deserialize<'de> for PlanInfo<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self(std::marker::PhantomData))
    }
}

/// An empty plan.
#[must_use]
pub fn from_info(_: &PlanInfo<'_>, _: Option<&str>) -> model::Plan {
    model::Plan::default()
}
