//! Many readers or one writer.

mod converting;
mod fences;
mod holding;
mod queueing;
mod reentering;

use lockkit_core::{Primitive, Resource};

use crate::fixture::resource;
use crate::{Case, Outcome};

pub(super) fn cases() -> Vec<Case> {
    [
        holding::cases(),
        queueing::cases(),
        fences::cases(),
        converting::cases(),
        reentering::cases(),
    ]
    .concat()
}

fn rw(name: &str) -> Outcome<Resource> {
    resource(Primitive::ReadWrite, name)
}
