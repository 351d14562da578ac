//! Backends that each break one rule of the contract, so that the suite can be tested.
//!
//! A case that no liar fails proves nothing. Each liar here is the in-memory backend with one lie,
//! of a kind that real lock libraries have shipped, and names the case that is meant for it.
//! `cargo test -p lockkit-testkit --test liars` requires that this case fails on the liar and
//! passes on the honest backend.

mod latches;
mod leases;
mod lie;
mod names;
mod order;
mod ownership;
mod permits;
mod several;
mod sharing;
mod traces;
mod waking;

use std::fmt;
use std::sync::Arc;

use lie::Lie;
pub use lie::Lying;

/// A backend with one lie.
#[derive(Clone, Copy)]
pub struct Liar {
    /// What it does wrong.
    pub name: &'static str,
    /// The [title](crate::Case::title) of the case that must catch it.
    pub caught_by: &'static str,
    lie: fn() -> Arc<dyn Lie>,
}

impl Liar {
    /// Its harness, on virtual time.
    #[must_use]
    pub fn harness(&self) -> Lying {
        Lying::new((self.lie)())
    }
}

impl fmt::Debug for Liar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Liar({:?}, caught by {})", self.name, self.caught_by)
    }
}

/// Every liar.
#[must_use]
pub fn liars() -> Vec<Liar> {
    fn liar<L: Lie + Default>(name: &'static str, caught_by: &'static str) -> Liar {
        Liar {
            name,
            caught_by,
            lie: || Arc::new(L::default()),
        }
    }
    vec![
        liar::<ownership::NoOwnerCheck>(
            "whoever releases frees the lock",
            "lifecycle::a_late_unlock_leaves_the_new_holder_alone",
        ),
        liar::<ownership::FreesTheNext>(
            "a second release frees somebody else's hold",
            "contract::a_second_release_finds_nothing_and_frees_nobody",
        ),
        liar::<ownership::ForgetsToWait>(
            "a busy lock is granted all the same",
            "exclusion::a_name_has_one_holder_whoever_asks",
        ),
        liar::<ownership::IgnoresEviction>(
            "an eviction is confirmed and not done",
            "lifecycle::an_eviction_frees_the_name_and_tells_the_holder",
        ),
        liar::<order::ResetsFences>(
            "fences begin anew after each release",
            "fencing::fences_rise_across_every_way_in_which_a_hold_ends",
        ),
        liar::<order::Unfair>(
            "the first in line is sent to its end",
            "waiting::waiters_are_served_in_the_order_of_their_coming",
        ),
        liar::<waking::NeverWakes>(
            "waiters are never woken",
            "waiting::a_waiter_waits_and_gets_in_when_the_holder_unlocks",
        ),
        liar::<waking::ListensTooLate>(
            "a release between attempt and subscription is missed",
            "contract::a_release_after_the_attempt_began_is_not_missed",
        ),
        liar::<waking::KeepsTheConnection>(
            "a request keeps others out until its caller is back",
            "cancellation::a_lock_that_is_not_polled_holds_nobody_up",
        ),
        liar::<leases::NeverTells>(
            "a hold that is gone is renewed all the same",
            "lease::a_hold_that_was_taken_away_is_told_lost",
        ),
        liar::<leases::Revives>(
            "a renewal brings a lost hold back",
            "contract::a_renewal_never_revives_what_was_released",
        ),
        liar::<leases::CountsFromTheReply>(
            "the lease counts from the reply",
            "contract::the_lease_counts_from_the_sending_and_not_from_the_reply",
        ),
        liar::<leases::ReportsWhatWasAskedFor>(
            "half of the lease that is reported is granted",
            "lease::a_hold_is_believed_no_longer_than_the_service_keeps_it",
        ),
        liar::<leases::MixesUpAnswers>(
            "renewals are answered in another order",
            "contract::renewals_and_releases_are_answered_in_the_order_asked",
        ),
        liar::<leases::IgnoresDetachment>(
            "a detached hold keeps its old lease",
            "detach::a_detached_hold_outlives_its_client_and_is_released_from_elsewhere",
        ),
        liar::<traces::LeaksPlaces>(
            "a place in line is not withdrawn",
            "cancellation::a_lock_that_waits_can_be_dropped_at_any_poll",
        ),
        liar::<traces::TriesTakePlaces>(
            "a try takes a place in line",
            "contract::a_busy_try_leaves_no_trace",
        ),
        liar::<traces::InItsOwnWay>(
            "an attempt that is repeated finds itself in the way",
            "outages::a_lost_reply_to_a_lock_does_not_lock_twice",
        ),
        liar::<names::CutsAtTheSlash>(
            "a blocks a/b",
            "names::a_name_is_not_in_the_way_of_one_that_begins_with_it",
        ),
        liar::<names::FoldsCase>(
            "names are compared without case",
            "names::upper_and_lower_case_are_different_names",
        ),
        liar::<sharing::WritersShare>(
            "two write at once",
            "read_write::a_writer_keeps_everybody_out",
        ),
        liar::<sharing::ReadersPass>(
            "a reader is let past a writer in line",
            "read_write::a_writer_in_line_stops_the_readers_behind_it",
        ),
        liar::<sharing::ReadsWithoutFence>(
            "a read has not the fence of the last write",
            "read_write::each_write_has_a_greater_fence_and_a_read_that_of_the_last_write",
        ),
        liar::<sharing::UpgradesAnyone>(
            "one of two readers becomes a writer",
            "read_write::a_reader_beside_another_stays_a_reader",
        ),
        liar::<sharing::UpgradesAnyone>(
            "two readers become writers at once",
            "read_write::of_two_readers_that_upgrade_at_once_not_both_do",
        ),
        liar::<sharing::UpgradesAnyone>(
            "a reader becomes a writer past a writer in line",
            "read_write::a_reader_does_not_become_a_writer_past_those_who_wait",
        ),
        liar::<sharing::DowngradesInTwoSteps>(
            "a downgrade lets a writer in between",
            "read_write::no_writer_gets_in_while_a_writer_becomes_a_reader",
        ),
        liar::<permits::IgnoresTheLimit>(
            "the limit of a semaphore is ignored",
            "semaphore::no_more_permits_are_out_than_there_are",
        ),
        liar::<permits::AcceptsAnyLimit>(
            "another limit is accepted",
            "semaphore::another_limit_than_that_of_the_name_is_refused",
        ),
        liar::<permits::SmallOnesPass>(
            "who wants many is overtaken by who wants few",
            "semaphore::who_wants_many_is_not_passed_by_who_wants_few",
        ),
        liar::<permits::ReturnsMoreThanTaken>(
            "more permits come back than were taken",
            "semaphore::permits_are_taken_several_at_once_or_not_at_all",
        ),
        liar::<ownership::FreesTheNext>(
            "a permit that is released twice frees another",
            "semaphore::a_permit_released_twice_comes_back_once",
        ),
        liar::<permits::ShrinksByForce>(
            "a smaller limit takes permits away",
            "semaphore::a_smaller_limit_takes_nothing_away_and_lets_nobody_in",
        ),
        liar::<permits::DetachesForGood>(
            "the expiry of a detached permit is ignored",
            "semaphore::a_detached_permit_lives_by_its_own_expiry",
        ),
        liar::<latches::ForgetsWhoWaited>(
            "a latch that is set anew forgets who stood in line",
            "latch::who_stood_in_line_passes_even_if_the_latch_is_set_anew_before_it_looks",
        ),
        liar::<latches::MissesLatecomers>(
            "a latch keeps waiting who comes after it opened",
            "latch::who_comes_late_returns_at_once",
        ),
        liar::<latches::OpenUnlessSet>(
            "a latch that was never set is open",
            "latch::a_latch_that_is_not_set_is_not_open",
        ),
        liar::<latches::CountsCalls>(
            "a latch counts a participant twice",
            "latch::a_participant_counts_once_however_often_it_says_so",
        ),
        liar::<latches::CountsCalls>(
            "a count is repeated after a lost reply",
            "latch::a_count_whose_reply_was_lost_and_that_is_repeated_counts_once",
        ),
        liar::<several::LeaksOnFailure>(
            "a multi-lock that fails keeps what it had",
            "multi_lock::all_names_are_held_or_none_is",
        ),
        liar::<several::LeaksOnFailure>(
            "several at once are held one after the other",
            "contract::several_are_held_at_once_or_none_is",
        ),
        liar::<several::SharesSegments>(
            "a segment has two holders",
            "segmented::each_segment_has_one_holder",
        ),
        liar::<several::EvictsTheFirst>(
            "an eviction frees the wrong holder",
            "inspection::evicting_one_reader_leaves_the_others",
        ),
        liar::<several::EvictsTheFirst>(
            "an eviction frees the wrong permit",
            "inspection::evicting_one_permit_leaves_the_others",
        ),
        liar::<several::AsksByForce>(
            "asking for release takes the lock away",
            "revocation::a_holder_that_does_not_heed_it_keeps_the_lock",
        ),
        liar::<several::CountsThoseWhoWait>(
            "those who wait are asked to release",
            "revocation::who_waits_is_not_asked",
        ),
        liar::<several::WakesTheHerd>(
            "a release wakes everybody",
            "wake_ups::a_release_of_a_fair_mutex_wakes_the_first_in_line",
        ),
        liar::<several::WakesTheHerd>(
            "a release of permits wakes everybody",
            "wake_ups::a_release_of_permits_wakes_as_many_as_fit",
        ),
    ]
}
