//! One resource in n segments.

mod any;
mod keys;
mod numbers;

use lockkit_core::{Primitive, Resource};

use crate::fixture::resource;
use crate::{Case, Outcome};

pub(super) fn cases() -> Vec<Case> {
    [any::cases(), keys::cases(), numbers::cases()].concat()
}

fn segmented(name: &str) -> Outcome<Resource> {
    resource(Primitive::Segmented, name)
}
