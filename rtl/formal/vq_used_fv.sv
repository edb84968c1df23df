// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Proof of vq_used, from a reset on: the driver sees every used entry once, in its slot, as it was
// appended, and in whole units.
//
// Form, without bound: every write is of whole entries, of half an entry, of used.idx alone, or of
// avail_event as asked for; none leaves the ring of its queue, is longer than 128 bytes or crosses
// 4 KiB; what is announced on `pub` is in memory. Content, to a bound: an entry's DW holds what
// the entry that is due in that slot says, and is written once; used.idx moves over no entry that
// is not written, to no place inside a unit, and never past what was appended; an idle block has
// published every whole unit.
//
// Followed are one queue and one slot of its ring, chosen at will, and two bits of each id and
// length. Assumed: streams keep what they offer; no more entries are appended than the ring holds
// beyond those that the driver saw; one reset at the start.
module vq_used_fv
  import ferronic_pkg::*;
  import vq_pkg::*;
#(
  parameter int unsigned DataW = 64,
  parameter int unsigned BatchEntries = 2,
  parameter int unsigned HoldCycles = 16,
  parameter bit          Queue = 1'b0,
  parameter bit          Form = 1'b1,     // what each write looks like
  parameter bit          Content = 1'b1,  // what the driver sees in the end
  parameter bit          Both = 1'b1,     // the other queue and avail_event too
  parameter int unsigned RingLog2 = 2,    // entries in either ring
  parameter int unsigned Lead = 24,       // bytes from the ring's start to the end of the page
  localparam int unsigned Dws = DataW / 32
) (
  input logic        clk_i,
  input logic        rx_valid_i,
  input vq_used_t    rx_i,
  input logic        rx_quiet_i,
  input logic        tx_valid_i,
  input vq_used_t    tx_i,
  input logic        tx_quiet_i,
  input logic        event_valid_i,
  input logic        event_q_i,
  input logic [15:0] event_idx_i,
  input logic        table_ready_i,
  input logic        wr_ready_i,
  input logic        pub_ready_i,
  // Constants that the solver chooses.
  input logic [ 1:0] slot_i
);
  // Reset, then the sizes and the indexes of both queues.
  logic [1:0] start_q = 2'd0;
  wire  run = (start_q == 2'd3);
  wire  rst_n = (start_q != 2'd0);
  always_ff @(posedge clk_i) if (!run) start_q <= start_q + 1'b1;
  wire  start_of = start_q[1];
  vq_cfg_t   cfg;
  vq_clear_t clear;
  assign cfg   = '{we_ring: !run && rst_n, q: qid_t'(start_of),
                   ring: 4'(RingLog2), default: '0};
  assign clear = '{valid: !run && rst_n, q: qid_t'(start_of)};

  logic             rx_ready, tx_ready, event_ready, table_re, wr_valid, wr_last, pub_valid, idle;
  qid_t             table_q, pub_q;
  logic [63:0]      table_addr_q;
  ctl_wr_hdr_t      hdr;
  logic [DataW-1:0] data;
  logic [15:0]      pub_idx, look_used;

  vq_used #(
    .DataW(DataW), .NumQueues(2), .BatchEntries(BatchEntries), .HoldCycles(HoldCycles)
  ) u_dut (
    .clk_i,
    .rst_ni       (rst_n),
    .fn_rst_i     (1'b0),
    .clear_i      (clear),
    .cfg_i        (cfg),
    .rx_valid_i,
    .rx_ready_o   (rx_ready),
    .rx_i,
    .rx_quiet_i,
    .tx_valid_i,
    .tx_ready_o   (tx_ready),
    .tx_i,
    .tx_quiet_i,
    .event_valid_i,
    .event_ready_o(event_ready),
    .event_q_i    (qid_t'(event_q_i)),
    .event_idx_i,
    .table_re_o   (table_re),
    .table_q_o    (table_q),
    .table_ready_i,
    .table_addr_i (table_addr_q),
    .wr_valid_o   (wr_valid),
    .wr_ready_i,
    .wr_hdr_o     (hdr),
    .wr_last_o    (wr_last),
    .wr_data_o    (data),
    .pub_valid_o  (pub_valid),
    .pub_ready_i,
    .pub_q_o      (pub_q),
    .pub_idx_o    (pub_idx),
    .pub_marker_o (),
    .pub_age_o    (),
    .look_q_i     (qid_t'(Queue)),
    .look_used_o  (look_used),
    .settle_i     (1'b0),
    .settled_o    (),
    .idle_o       (idle)
  );

  // Used rings of the two queues, in two places; the page ends anywhere in them, or just before.
  function automatic logic [63:0] base_of(input logic q);
    return {43'd0, q, 20'h1000 - 20'(Lead)};
  endfunction
  // Valid for one cycle; what is read next is another's.
  always_ff @(posedge clk_i) begin
    table_addr_q <= (table_re && table_ready_i) ? base_of(table_q[0]) : '1;
  end

  // ---------------------------------------------------------------- the followed queue
  // Indexes: appended, end of the last whole unit, seen by the driver. No more than a ring's
  // entries lie between, so three bits tell them apart.
  typedef logic [2:0] few_t;
  localparam logic [1:0]  Mask = 2'((1 << RingLog2) - 1);
  localparam logic [12:0] Base = 13'h1000 - 13'(Lead);
  wire         accept = Queue ? (tx_valid_i && tx_ready) : (rx_valid_i && rx_ready);
  wire         other  = Queue ? (rx_valid_i && rx_ready) : (tx_valid_i && tx_ready);
  vq_used_t    entry;
  assign entry = Queue ? tx_i : rx_i;
  few_t        app_q, whole_q, seen_q;
  logic [15:0] idx_q;              // used.idx as it was written
  logic        due_q;              // the slot's entry is appended and not yet visible
  logic        id_done_q, len_done_q;  // its halves are in memory
  few_t        due_at_q;           // its index
  logic        due_whole_q;        // it ends a unit
  logic [1:0]  due_id_q, due_len_q;
  few_t        other_q, other_idx_q;   // entries of the other queue that the driver has not seen

  // ---------------------------------------------------------------- the write under way
  logic [5:0] dw_q;             // DWs of it that were taken
  wire  fire = wr_valid && wr_ready_i;
  wire  ours = (hdr.addr[20] == Queue);
  wire [10:0] at = hdr.addr[12:2] - Base[12:2];      // DW of the ring at which it begins
  wire [10:0] id_at  = 11'd1 + {8'd0, slot_i, 1'b0};
  wire [10:0] len_at = 11'd2 + {8'd0, slot_i, 1'b0};
  localparam logic [10:0] EndAt = 11'd3 + {8'd0, Mask, 1'b0};

  logic id_now, len_now, strays, id_right, len_right;
  always_comb begin
    id_now    = 1'b0;
    len_now   = 1'b0;
    id_right  = 1'b1;
    len_right = 1'b1;
    strays    = 1'b0;
    for (int l = 0; l < int'(Dws); l++) begin
      if (6'(l) < hdr.dw_len - dw_q) begin
        if (at + 11'(dw_q) + 11'(l) == id_at) begin
          id_now   = 1'b1;
          id_right = (data[32*l +: 2] == due_id_q);
        end
        if (at + 11'(dw_q) + 11'(l) == len_at) begin
          len_now   = 1'b1;
          len_right = (data[32*l +: 2] == due_len_q);
        end
        // Nothing before the entries or behind them.
        if (at + 11'(dw_q) + 11'(l) == '0 || at + 11'(dw_q) + 11'(l) >= EndAt) strays = 1'b1;
      end
    end
  end
  wire is_index = ours && (at == '0);
  wire is_event = ours && (at == EndAt);
  wire is_entry = ours && !is_index && !is_event;
  wire few_t over    = data[18:16] - seen_q;          // entries that become visible
  wire few_t due_off = due_at_q - seen_q;
  wire       shown   = due_q && (due_off < over);

  always_ff @(posedge clk_i) begin
    if (!run) begin
      app_q       <= '0;
      whole_q     <= '0;
      seen_q      <= '0;
      idx_q       <= '0;
      due_q       <= 1'b0;
      id_done_q   <= 1'b0;
      len_done_q  <= 1'b0;
      dw_q        <= '0;
      other_q     <= '0;
      other_idx_q <= '0;
    end else begin
      if (fire) dw_q <= wr_last ? '0 : dw_q + 6'(Dws);
      if (fire && is_entry && id_now) id_done_q <= 1'b1;
      if (fire && is_entry && len_now) len_done_q <= 1'b1;
      if (fire && is_index) begin
        seen_q <= data[18:16];
        idx_q  <= data[31:16];
        if (shown) due_q <= 1'b0;
      end
      if (accept) begin
        app_q <= app_q + 1'b1;
        if (entry.publish) whole_q <= app_q + 1'b1;
        if ((app_q[1:0] & Mask) == slot_i) begin
          due_q       <= 1'b1;
          id_done_q   <= 1'b0;
          len_done_q  <= 1'b0;
          due_at_q    <= app_q;
          due_whole_q <= entry.publish;
          due_id_q    <= entry.id[1:0];
          due_len_q   <= entry.len[1:0];
        end
      end
      other_q <= other_q + few_t'(other);
      if (fire && !ours && hdr.first_be == 4'b1100) begin
        other_q     <= other_q + few_t'(other) - few_t'(data[18:16] - other_idx_q);
        other_idx_q <= data[18:16];
      end
    end
  end

  // ---------------------------------------------------------------- assumptions
  logic       rx_wait_q, tx_wait_q, event_wait_q, event_q_q;
  logic [1:0] slot_q;
  vq_used_t   rx_q, tx_q;
  logic [15:0] event_idx_q;

  always_ff @(posedge clk_i) begin
    rx_wait_q    <= run && rx_valid_i && !rx_ready;
    tx_wait_q    <= run && tx_valid_i && !tx_ready;
    event_wait_q <= run && event_valid_i && !event_ready;
    rx_q         <= rx_i;
    tx_q         <= tx_i;
    event_q_q    <= event_q_i;
    event_idx_q  <= event_idx_i;
    slot_q       <= slot_i;
  end

  always_comb begin
    assume ((slot_i & ~Mask) == '0);
    if (start_q != 2'd0) assume (slot_q == slot_i);
    assume (rx_i.q == 7'd0 && tx_i.q == 7'd1);
    assume (rx_i.id[15:11] == '0 && rx_i.len[31:17] == '0);
    assume (tx_i.id[15:11] == '0 && tx_i.len[31:17] == '0);
    if (!run) assume (!rx_valid_i && !tx_valid_i && !event_valid_i);
    assume (!rx_wait_q || (rx_valid_i && rx_q == rx_i));
    assume (!tx_wait_q || (tx_valid_i && tx_q == tx_i));
    assume (!event_wait_q || (event_valid_i && event_q_q == event_q_i &&
                              event_idx_q == event_idx_i));
    // A driver posts no more buffers than its ring has places.
    assume (!(Queue ? tx_valid_i : rx_valid_i) || few_t'(app_q - seen_q) <= few_t'(Mask));
    assume (!(Queue ? rx_valid_i : tx_valid_i) || other_q <= few_t'(Mask));
    if (!Both) assume (!(Queue ? rx_valid_i : tx_valid_i) && !event_valid_i && table_ready_i);
  end

  // ---------------------------------------------------------------- what must hold
  always_ff @(posedge clk_i) begin
    if (run && fire) begin
      if (Form) KnownRing: assert (hdr.addr[19:13] == '0);
      if (Form) Short: assert (hdr.dw_len != '0 && hdr.dw_len <= 6'd32);
      if (Form) WithinPage: assert ({1'b0, hdr.addr[11:2]} + 11'(hdr.dw_len) <= 11'd1024);
      if (Form) LastBeat: assert (wr_last == (hdr.dw_len - dw_q <= 6'(Dws)));
      if (is_entry) begin
        if (Form) InsideRing: assert (!strays);
        if (Form) WholeDws: assert (hdr.first_be == '1 &&
                                    hdr.last_be == (hdr.dw_len == 6'd1 ? '0 : '1));
        if (Content && id_now) IdOnce: assert (due_q && !id_done_q && id_right);
        if (Content && len_now) LenOnce: assert (due_q && !len_done_q && len_right);
      end
      if (is_index) begin
        if (Form) IndexAlone: assert (hdr.dw_len == 6'd1 && hdr.first_be == 4'b1100);
        if (Content) Forward: assert (over != '0 && over <= few_t'(app_q - seen_q));
        if (Content) SixteenBits: assert (data[31:16] == idx_q + 16'(over));
        if (Content && shown) WrittenBefore: assert (id_done_q && len_done_q);
        if (Content && shown && few_t'(due_off + 1'b1) == over) WholeUnit: assert (due_whole_q);
      end
      if (Form && is_event)
        EventAsked: assert (hdr.dw_len == 6'd1 && hdr.first_be == 4'b0011 && event_valid_i &&
                            event_q_i == Queue && data[15:0] == event_idx_i);
    end
    if (run) begin
      if (Form && pub_valid && pub_q[0] == Queue) Visible: assert (pub_idx == idx_q);
      if (Content && idle) NothingLeft: assert (seen_q == whole_q);
      if (Content) KnownFirst: assert (few_t'(look_used[2:0] - seen_q) <= few_t'(app_q - seen_q));
    end
  end
endmodule
