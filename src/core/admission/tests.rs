use super::*;
use crate::core::policy::{AtMost, Queue, Slo};

const SHORT: ClassId = ClassId(0);
const LONG: ClassId = ClassId(1);

fn class(concurrency: Option<usize>, capacity: usize, timeout: u64) -> Class {
    Class {
        name: String::new(),
        at_most: AtMost::default(),
        models: Vec::new(),
        concurrency,
        queue: Queue {
            capacity,
            timeout: Duration::from_secs(timeout),
            overflow_status: 429,
            timeout_status: 503,
            promote_after: None,
        },
        slo: Slo::default(),
    }
}

fn at(seconds: u64) -> Time {
    Time::default().after(Duration::from_secs(seconds))
}

fn admission() -> Admission {
    Admission::new(&[class(Some(2), 3, 5), class(Some(1), 1, 30)], at(0))
}

fn arrive(admission: &mut Admission, stream: u32, class: ClassId) -> Arrival {
    admission.arrive(at(0), StreamId(stream), class, None)
}

fn ticket(arrival: Arrival) -> Ticket {
    match arrival {
        Arrival::Admitted(ticket) | Arrival::Parked(ticket) => ticket,
        Arrival::Full => panic!("refused"),
    }
}

fn streams(leaving: &[Leaving]) -> Vec<u32> {
    leaving.iter().map(|leaving| leaving.stream.0).collect()
}

#[test]
fn slots_then_the_line_then_no_more() {
    let mut admission = admission();
    assert!(matches!(arrive(&mut admission, 1, SHORT), Arrival::Admitted(_)));
    assert!(matches!(arrive(&mut admission, 2, SHORT), Arrival::Admitted(_)));
    for stream in 3..=5 {
        assert!(matches!(arrive(&mut admission, stream, SHORT), Arrival::Parked(_)));
    }
    assert_eq!(arrive(&mut admission, 6, SHORT), Arrival::Full);
    assert!(matches!(arrive(&mut admission, 7, LONG), Arrival::Admitted(_)), "classes do not share slots");
    assert_eq!(admission.load(SHORT), (2, 3));
}

#[test]
fn the_oldest_goes_first_and_a_newcomer_does_not_overtake() {
    let mut admission = admission();
    let first = ticket(arrive(&mut admission, 1, SHORT));
    ticket(arrive(&mut admission, 2, SHORT));
    ticket(arrive(&mut admission, 3, SHORT));
    ticket(arrive(&mut admission, 4, SHORT));
    admission.leave(at(1), first, true);
    assert!(matches!(arrive(&mut admission, 5, SHORT), Arrival::Parked(_)));
    assert_eq!(streams(&admission.dispatch(32)), [3]);
    assert!(admission.dispatch(32).is_empty());
}

#[test]
fn who_leaves_the_line_holds_no_place() {
    let mut admission = admission();
    let running = [1, 2].map(|stream| ticket(arrive(&mut admission, stream, SHORT)));
    let gone = ticket(arrive(&mut admission, 3, SHORT));
    ticket(arrive(&mut admission, 4, SHORT));
    admission.leave(at(1), gone, false);
    assert_eq!(admission.load(SHORT), (2, 1));
    admission.leave(at(1), running[0], true);
    assert_eq!(streams(&admission.dispatch(32)), [4]);
}

#[test]
fn leaving_twice_frees_one_slot() {
    let mut admission = admission();
    let first = ticket(arrive(&mut admission, 1, SHORT));
    ticket(arrive(&mut admission, 2, SHORT));
    admission.leave(at(1), first, true);
    admission.leave(at(1), first, true);
    assert_eq!(admission.load(SHORT), (1, 0));
}

#[test]
fn patience_ends_at_the_deadline_and_only_once() {
    let mut admission = admission();
    for stream in 1..=3 {
        ticket(arrive(&mut admission, stream, SHORT));
    }
    let hasty = admission.arrive(at(0), StreamId(4), SHORT, Some(Duration::from_secs(1)));
    let greedy = admission.arrive(at(0), StreamId(5), SHORT, Some(Duration::from_secs(60)));
    assert!(matches!((hasty, greedy), (Arrival::Parked(_), Arrival::Parked(_))));
    assert!(admission.expire(Time(at(1).0 - 1), 32).is_empty());
    assert_eq!(streams(&admission.expire(at(1), 32)), [4]);
    assert_eq!(streams(&admission.expire(at(5), 1)), [3]);
    assert!(admission.has_overdue(at(5)));
    assert_eq!(streams(&admission.expire(at(5), 32)), [5], "no more than the class's own timeout");
    assert!(!admission.is_waiting());
    assert_eq!(admission.load(SHORT), (2, 0));
}

#[test]
fn no_patience_means_now_or_not_at_all() {
    let mut admission = admission();
    let now = Some(Duration::ZERO);
    assert!(matches!(admission.arrive(at(0), StreamId(1), LONG, now), Arrival::Admitted(_)));
    assert_eq!(admission.arrive(at(0), StreamId(2), LONG, now), Arrival::Full);
}

#[test]
fn a_class_without_bound_never_waits() {
    let mut admission = Admission::new(&[class(None, 0, 5)], at(0));
    for stream in 0..1000 {
        assert!(matches!(arrive(&mut admission, stream, SHORT), Arrival::Admitted(_)));
    }
}

#[test]
fn dispatch_is_bounded_and_goes_on() {
    let mut admission = Admission::new(&[class(Some(100), 400, 5)], at(0));
    let running: Vec<_> = (0..100).map(|stream| ticket(arrive(&mut admission, stream, SHORT))).collect();
    for stream in 100..500 {
        ticket(arrive(&mut admission, stream, SHORT));
    }
    for ticket in running {
        admission.leave(at(1), ticket, true);
    }
    let mut served = Vec::new();
    while admission.has_ready() {
        let leaving = admission.dispatch(32);
        assert!(!leaving.is_empty() && leaving.len() <= 32);
        served.extend(streams(&leaving));
    }
    assert_eq!(served, (100..200).collect::<Vec<_>>());
}
