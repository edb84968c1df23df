// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Proof of msix, without bound, with two vectors.
//
// An event is followed by a message that is sent after it, or pends: a block that is idle while
// the vector may be sent owes none. No message is sent without an event of its own; events that
// come while the vector or the function is masked count as one. So an event while masked fires
// exactly once after that (from FnSettle cycles on, what waits at the channel counts). No message
// is offered while its vector is masked, from VecSettle cycles after the write is acknowledged, or
// from the cycle after that in which MSI-X or bus mastering is turned off or the function masked. A
// message is what the table says, and pending bits read as what waits.
//
// One vector is followed, chosen at will, and two bits of each word of its entry. Assumed, as
// software and the target see to: accesses come one at a time, and the settings of the function
// stand meanwhile; an entry is changed only while it may not be sent; no vector is unmasked before
// its data is written, of which bit 0 is its number, by which the proof knows a message. Resets,
// masks and all else come at any time.
module msix_fv
  import ferronic_pkg::*;
#(
  parameter int unsigned VecSettle = 2,
  parameter int unsigned FnSettle = 6
) (
  input logic        clk_i,
  input logic        fn_rst_i,
  input logic        clear_i,
  input logic        halt_i,
  input logic        enable_i,
  input logic        mask_i,
  input logic        bus_master_i,
  input reg_req_t    reg_req_i,
  input irq_req_t    irq_i,
  input logic        msg_ready_i,
  input logic        vec_i          // the vector that is followed; constant
);
  logic rst_n = 1'b0;
  always_ff @(posedge clk_i) rst_n <= 1'b1;

  reg_rsp_t    reg_rsp;
  logic        irq_ready, msg_valid, idle;
  logic [63:2] msg_addr;
  logic [31:0] msg_data;

  msix #(.NumVectors(2)) u_dut (
    .clk_i,
    .rst_ni      (rst_n),
    .fn_rst_i,
    .clear_i,
    .halt_i,
    .enable_i,
    .mask_i,
    .bus_master_i,
    .idle_o      (idle),
    .reg_req_i,
    .reg_rsp_o   (reg_rsp),
    .irq_i,
    .irq_ready_o (irq_ready),
    .msg_valid_o (msg_valid),
    .msg_ready_i,
    .msg_addr_o  (msg_addr),
    .msg_data_o  (msg_data),
    .ev_irq_o    ()
  );

  // ---------------------------------------------------------------- assumptions
  // Requests stay until answered.
  logic     vec_q;
  reg_req_t req_q;
  irq_req_t irq_q;
  logic     req_wait_q, irq_wait_q;
  wire  [2:0] settings = {enable_i, mask_i, bus_master_i};
  logic [2:0] settings_q;
  always_ff @(posedge clk_i) begin
    vec_q      <= vec_i;
    req_q      <= reg_req_i;
    irq_q      <= irq_i;
    settings_q <= settings;
    req_wait_q <= rst_n && reg_req_i.valid && !reg_rsp.ack;
    irq_wait_q <= rst_n && irq_i.valid && !irq_ready;
  end

  // Bit 0 of a vector's data is its number, by which a message is known; no vector is unmasked
  // before its data is written. An entry is changed only while it is masked, as software must.
  wire       is_write = reg_req_i.valid && reg_req_i.write && !reg_req_i.addr[12];
  wire       to_entry = is_write && (reg_req_i.addr[11:5] == '0);
  wire [1:0] word     = reg_req_i.addr[3:2];
  wire       of_vec   = reg_req_i.addr[4];
  logic [1:0] named_q;
  logic       masked_q;    // the followed vector
  wire        shut = masked_q || mask_i || !enable_i || !bus_master_i;

  always_comb begin
    if (rst_n) begin
      assume (vec_q == vec_i);
      assume (!req_wait_q || reg_req_i == req_q);
      assume (!irq_wait_q || irq_i == irq_q);
      // The host's accesses come one at a time: its settings stand while one is under way.
      assume (!req_wait_q || settings == settings_q);
    end
    assume (!reg_req_i.valid || (reg_req_i.addr[15:13] == 3'b010 && reg_req_i.addr[1:0] == '0));
    if (to_entry && word == 2'd2 && reg_req_i.be[0]) assume (reg_req_i.wdata[0] == of_vec);
    if (to_entry && word == 2'd3 && reg_req_i.be[0])
      assume (reg_req_i.wdata[0] || named_q[of_vec]);
    if (to_entry && word != 2'd3 && of_vec == vec_i) assume (shut);
  end

  // ---------------------------------------------------------------- what software wrote
  logic [31:0] low_q, high_q, data_q;
  logic [ 2:0] known_q;    // written whole
  wire  [31:0] lanes = {{8{reg_req_i.be[3]}}, {8{reg_req_i.be[2]}}, {8{reg_req_i.be[1]}},
                        {8{reg_req_i.be[0]}}};
  wire written = to_entry && reg_rsp.ack;
  wire written_vec = written && (of_vec == vec_i);

  always_ff @(posedge clk_i or negedge rst_n) begin
    if (!rst_n) begin
      named_q  <= '0;
      masked_q <= 1'b1;
      known_q  <= '0;
      low_q    <= '0;
      high_q   <= '0;
      data_q   <= '0;
    end else begin
      if (written && word == 2'd2 && reg_req_i.be[0]) named_q[of_vec] <= 1'b1;
      if (written_vec) begin
        if (reg_req_i.be == '1 && word != 2'd3) known_q[word] <= 1'b1;
        if (word == 2'd0) low_q <= (low_q & ~lanes) | (reg_req_i.wdata & lanes);
        if (word == 2'd1) high_q <= (high_q & ~lanes) | (reg_req_i.wdata & lanes);
        if (word == 2'd2) data_q <= (data_q & ~lanes) | (reg_req_i.wdata & lanes);
        if (word == 2'd3 && reg_req_i.be[0]) masked_q <= reg_req_i.wdata[0];
      end
      if (clear_i) begin
        masked_q <= 1'b1;
        named_q  <= '0;
        known_q  <= '0;
      end
    end
  end

  // ---------------------------------------------------------------- events and messages
  wire reset = fn_rst_i || clear_i;
  wire event_in = irq_i.valid && irq_ready && (irq_i.vector == 16'(vec_i)) && enable_i && !halt_i;
  wire ours = msg_valid && (msg_data[0] == vec_i);
  wire sent = ours && msg_ready_i;

  logic       must_q;        // an event without a message after it
  logic [1:0] may_q;         // messages that events allow
  logic [2:0] vec_shut_q;    // cycles for which the vector was masked
  logic [2:0] fn_shut_q;     // cycles for which nothing might be sent
  logic       open_q;
  logic       fresh_q;       // an event in the last cycle: the mask is being looked at
  logic       stale_q;       // an event that was forgotten when MSI-X was turned off
  logic [1:0] on_q;          // cycles for which MSI-X was on, without a reset

  always_ff @(posedge clk_i or negedge rst_n) begin
    if (!rst_n) begin
      must_q     <= 1'b0;
      may_q      <= '0;
      vec_shut_q <= '0;
      fn_shut_q  <= '0;
      open_q     <= 1'b0;
      fresh_q    <= 1'b0;
      stale_q    <= 1'b0;
      on_q       <= '0;
    end else begin
      if (reset || !enable_i) must_q <= 1'b0;
      else if (event_in) must_q <= 1'b1;
      else if (sent) must_q <= 1'b0;

      if (reset || (!enable_i && fn_shut_q >= 3'(FnSettle))) may_q <= '0;
      else if (event_in) may_q <= (may_q == '0) ? 2'd1 : 2'd2;
      else if (sent) may_q <= may_q - 1'b1;
      else if (!fresh_q && may_q == 2'd2 &&
               (vec_shut_q >= 3'(VecSettle) || fn_shut_q >= 3'(FnSettle)))
        may_q <= 2'd1;

      vec_shut_q <= !masked_q ? '0 : (vec_shut_q == '1) ? '1 : vec_shut_q + 1'b1;
      fn_shut_q  <= !(mask_i || !enable_i || !bus_master_i) ? '0 :
                    (fn_shut_q == '1) ? '1 : fn_shut_q + 1'b1;
      open_q     <= !shut;
      fresh_q    <= event_in;
      stale_q    <= !(reset || idle) && (stale_q || (may_q != '0 && !enable_i));
      on_q       <= (reset || !enable_i) ? '0 : (on_q == '1) ? '1 : on_q + 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (rst_n) begin
      if (sent) NotWithoutEvent: assert (may_q != '0);
      if (vec_shut_q >= 3'(VecSettle)) NotWhileMasked: assert (!ours);
      if (fn_shut_q != '0) NotWhileOff: assert (!msg_valid);
      if (idle && open_q && !shut) IdleOwesNothing: assert (!must_q);
      // Two bits of each word; the others are treated alike.
      if (sent && known_q[0]) AddressLow: assert (msg_addr[3:2] == low_q[3:2]);
      if (sent && known_q[1]) AddressHigh: assert (msg_addr[33:32] == high_q[1:0]);
      if (sent && known_q[2]) Data: assert (msg_data[1:0] == data_q[1:0]);
      if (reg_rsp.ack && reg_req_i.addr[12:2] == {1'b1, 10'd0} && masked_q && on_q >= 2'd2)
        PendingReads: assert (reg_rsp.rdata[vec_i] ? (may_q != '0 || stale_q) : !must_q);
    end
  end
endmodule
