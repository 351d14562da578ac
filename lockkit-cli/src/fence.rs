//! Fencing tokens, as far as the backend has them.

use lockkit::{Fence, FenceClass, Locker, Mode};
use serde_json::Value;

/// The token of a grant; `None` on a backend without tokens, which calls every one 0.
pub(crate) fn of(locker: &Locker, fence: Fence) -> Option<Fence> {
    (locker.descriptor().fence != FenceClass::None).then_some(fence)
}

/// The token for programs, null without one.
pub(crate) fn json(fence: Option<Fence>) -> Value {
    fence.map(Fence::get).into()
}

/// `fence 7, exclusive`, or `exclusive` without one.
pub(crate) fn and_mode(fence: Option<Fence>, mode: Mode) -> String {
    match fence {
        Some(fence) => format!("fence {fence}, {mode}"),
        None => mode.to_string(),
    }
}
