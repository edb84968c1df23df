// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Flow hash of a frame, from its first bytes as they stream by.
//
// IPv4 (no VLAN tag): addresses, and ports if the header has no options, the protocol is TCP or UDP
// and the packet is no fragment. IPv6: addresses, and ports if TCP or UDP follows at once. The
// bytes are folded by XOR into 16 bits. Everything else, and what is cut short, gives 0.
//
// `hash_o` is valid in the cycle after the last beat, for the `len_i` given in that cycle. One beat
// a cycle. Invariant: equal header fields give equal hashes at every DataW.
module rx_steer
  import ferronic_pkg::*;
#(
  parameter int unsigned DataW = 64
) (
  input  logic             clk_i,
  input  logic             beat_valid_i,
  input  logic             beat_first_i, // with valid: first beat of a frame
  input  logic [DataW-1:0] beat_data_i,
  input  logic [15:0]      len_i,        // bytes of the frame that ended in the cycle before
  output logic [15:0]      hash_o
);
  localparam int unsigned Lanes = DataW / 8;
  localparam int unsigned Halves = Lanes / 2;
  localparam int unsigned LastByte = 57; // last byte of the IPv6 ports

  logic [3:0]  beat_q, beat;
  logic [15:0] acc_q, acc;
  logic        is_v4_q, is_v4, is_v6_q, is_v6, ihl5_q, ihl5, ports_q, ports;

  // Number of this beat; stops at 15, beyond the last header byte at every width.
  assign beat = beat_first_i ? 4'd0 : beat_q;

  if (LastByte / Lanes >= 15 || Lanes < 8) begin : g_bad_width
    $error("%m: DataW (%0d) must be 64 or more", DataW);
  end

  // Classification. A field is taken in its beat and remembered for the beats that follow.
  `define FERRONIC_BYTE(p_) beat_data_i[8*((p_) % Lanes) +: 8]
  `define FERRONIC_IN_BEAT(p_) (beat == 4'((p_) / Lanes))
  always_comb begin
    is_v4 = is_v4_q;
    is_v6 = is_v6_q;
    ihl5  = ihl5_q;
    ports = ports_q;
    if (`FERRONIC_IN_BEAT(12)) begin
      is_v4 = {`FERRONIC_BYTE(12), `FERRONIC_BYTE(13)} == 16'h0800;
      is_v6 = {`FERRONIC_BYTE(12), `FERRONIC_BYTE(13)} == 16'h86dd;
    end
    if (`FERRONIC_IN_BEAT(14)) ihl5 = `FERRONIC_BYTE(14) == 8'h45;
    // Bytes 20 to 23 are in one beat: IPv4 fragment field and protocol, IPv6 next header.
    if (`FERRONIC_IN_BEAT(20)) begin
      if (is_v4) begin
        ports = ihl5 && {`FERRONIC_BYTE(20) & 8'h3f, `FERRONIC_BYTE(21)} == 16'h0 &&
                (`FERRONIC_BYTE(23) == 8'd6 || `FERRONIC_BYTE(23) == 8'd17);
      end else begin
        ports = `FERRONIC_BYTE(20) == 8'd6 || `FERRONIC_BYTE(20) == 8'd17;
      end
    end
  end
  `undef FERRONIC_BYTE
  `undef FERRONIC_IN_BEAT

  // Which 16-bit halves of a beat are folded in. Half `h` of the frame is bytes 2h and 2h+1.
  function automatic logic [Halves-1:0] taken(logic [3:0] at, logic v4, logic with_ports);
    logic [Halves-1:0] halves;
    halves = '0;
    for (int unsigned h = 11; h <= LastByte / 2; h++) begin
      if (at == 4'(h / Halves)) begin
        if (v4) halves[h % Halves] = (h >= 13 && h <= 16) || (h >= 17 && h <= 18 && with_ports);
        else halves[h % Halves] = (h <= 26) || with_ports;
      end
    end
    return halves;
  endfunction

  // Where nothing is folded in by what the same beat tells, that is known in the beat before.
  localparam bit Early = (13 / Lanes != 22 / Lanes) && (23 / Lanes != 34 / Lanes);
  logic [Halves-1:0] take;
  if (Early) begin : g_early
    logic [Halves-1:0] take_q;
    always_ff @(posedge clk_i) begin
      if (beat_valid_i) take_q <= taken(beat + 4'd1, is_v4, ports);
    end
    assign take = take_q;
  end else begin : g_now
    assign take = taken(beat, is_v4, ports);
  end

  always_comb begin
    acc = (beat_first_i && !Early) ? 16'h0 : acc_q;
    for (int unsigned h = 0; h < Halves; h++) begin
      acc ^= {16{take[h]}} & {beat_data_i[16*h +: 8], beat_data_i[16*h+8 +: 8]};
    end
  end

  always_ff @(posedge clk_i) begin
    if (beat_valid_i) begin
      if (beat != 4'd15) beat_q <= beat + 4'd1;
      else beat_q <= beat;
      acc_q   <= (beat_first_i && Early) ? 16'h0 : acc;
      is_v4_q <= is_v4;
      is_v6_q <= is_v6;
      ihl5_q  <= ihl5;
      ports_q <= ports;
    end
  end

  wire [15:0] need = is_v4_q ? (ports_q ? 16'd38 : 16'd34) : (ports_q ? 16'd58 : 16'd54);
  assign hash_o = ((is_v4_q || is_v6_q) && len_i >= need) ? acc_q : 16'h0;
endmodule
