//! The two phases, explored: every order of every message, for three nodes and three clients.
//!
//! There is no clock in it. A hold may expire, or be released, at any moment; a message may arrive
//! at any time after it was sent, in any order, or never (nothing ever has to happen). So whatever
//! holds here holds however wrong clocks and delays are. What a client counts with is the code that
//! runs on real servers ([`majority`](super::ballot::majority),
//! [`token_above`](super::ballot::token_above)); what a node does is written down here as the scripts
//! do it.
//!
//! Some steps of the real thing are one step here, without loss: a reply is a part of the request
//! that it answers, because a client may use it at any later step, or never; a release is an
//! expiry; a refused or unanswered request changes nothing, so it is left out.

mod explore;
mod renewing;
mod rules;
mod state;
mod taking;
mod tests;
