//! Engines by name: what is found, what is refused, and which goes first.

use slowstart_engines::{ENGINES, named, of};
use slowstart_study::scenario::StudyText;

#[test]
fn names_are_found_or_refused() {
    assert_eq!(named("sim").expect("always there").name(), "sim");
    let refused = |name: &str| named(name).expect_err(name).to_string();
    assert_eq!(
        refused("quicc"),
        "engine: found \"quicc\" (did you mean \"quic\"?), expected one of sim, quic:quinn, quic:noq, linux:KERNEL, kernel"
    );
    assert!(refused("kernal").contains("did you mean \"kernel\"?"), "{}", refused("kernal"));
    assert!(refused("quic:s2n").contains("expected quic:quinn or quic:noq"));
    assert!(refused("sim,x=1").contains("no settings"));
    for entry in ENGINES {
        match entry.absence() {
            Some(why) => assert!(refused(entry.name).contains(why)),
            // It names a file.
            None if entry.name.starts_with("linux:") => {
                assert!(refused(entry.name).contains("KERNEL: No such file"));
            }
            None => assert_eq!(named(entry.name).expect("built").name(), entry.name),
        }
    }
}

#[cfg(feature = "quic")]
#[test]
fn quic_is_the_first_stack_and_settings_follow() {
    assert_eq!(named("quic").expect("built").name(), "quic:quinn");
    assert_eq!(named("quic,ecn=on").expect("built").name(), "quic:quinn,ecn=on");
    let refused = |name: &str| named(name).expect_err(name).to_string();
    assert!(refused("quic:noq,mtu=9").contains("found \"mtu=9\", expected crypto=tls or null"));
    assert!(refused("quic:quinn,crypto=null").contains("quic:noq only"));
}

#[test]
fn an_argument_goes_before_the_study() {
    let text = StudyText { engine: Some("nothing".into()), ..StudyText::default() };
    assert_eq!(of(Some("sim"), &text).expect("there").name(), "sim");
    assert!(of(None, &text).is_err());
    assert_eq!(of(None, &StudyText::default()).expect("there").name(), "sim");
}
