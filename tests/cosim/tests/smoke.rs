//! The thin path: one frame each way.
use ferronic::DeviceConfig;
use ferronic_cosim_tests::card::Card;
use ferronic_sim::SimConfig;

#[test]
fn one_frame_each_way_is_byte_identical() {
    let mut card = Card::open(SimConfig::default(), DeviceConfig::default());
    let frame: Vec<u8> = (0..100).collect();
    card.wire.push(frame.clone());
    let got = card.receive_count(1);
    assert_eq!(got[0].data, frame);
    assert_eq!(got[0].header.num_buffers.get(), 1);
    card.send(std::slice::from_ref(&frame));
    assert_eq!(card.wire.take().unwrap().data, frame);
}
