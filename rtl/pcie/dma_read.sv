// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Reads host memory into the control and the transmit RAM. Requests of two clients are cut into
// memory reads with one tag each (dma_read_issue); completions may be split and may come in any
// order between tags; requests finish in the order of issue.
//
// Receiver: one beat a cycle, always ready. S0 registers the link's beat; S1 looks the tag up and
// checks the header against what is still missing; S2 rotates the payload to its RAM position; RAM
// write one cycle later. Only bytes that were asked for are written, and only inside the region of
// their tag: a completion that does not fit what its tag still misses is dropped and counted.
//
// A tag ends by its last byte, by UR/CA, or by time (only the oldest is timed, from its issue, in
// steps of an eighth of TimeoutCycles), never otherwise. The clock of the timeout stands while a
// read waits for the link, so that no tag ends before its request was sent. Halting does not cut
// outstanding tags off.
`include "ferronic_assert.svh"
module dma_read
  import ferronic_pkg::*;
  import pcie_pkg::*;
#(
  parameter int unsigned DataW = 64,
  parameter int unsigned Tags = (DataW >= 256) ? 64 : 32,
  parameter int unsigned TimeoutCycles = 1250000,
  localparam int unsigned Lanes = DataW / 8,
  localparam int unsigned LaneW = $clog2(Lanes),
  localparam int unsigned WordW = 16 - LaneW,
  localparam int unsigned TagW = $clog2(Tags)
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             halt_i,
  input  logic [12:0]      max_read_i,     // bytes
  input  logic             ext_tag_i,
  input  logic             timeout_off_i,
  input  logic [15:0]      requester_i,
  output logic             idle_o,

  input  logic             ctl_req_valid_i,
  output logic             ctl_req_ready_o,
  input  dma_rd_req_t      ctl_req_i,
  output dma_rd_done_t     ctl_done_o,
  input  logic             tx_req_valid_i,
  output logic             tx_req_ready_o,
  input  dma_rd_req_t      tx_req_i,
  output dma_rd_done_t     tx_done_o,

  output logic [Lanes-1:0] ram_we_o,
  output dma_dst_e         ram_dst_o,
  output logic [WordW-1:0] ram_waddr_o,
  output logic [Lanes-1:0] ram_winc_o,
  output logic [DataW-1:0] ram_wdata_o,

  output logic             np_valid_o,
  input  logic             np_ready_i,
  output mem_req_t         np_req_o,
  output logic [7:0]       np_tag_o,
  input  logic             np_pending_i,   // one is waiting between here and the link

  input  logic             rc_valid_i,
  output logic             rc_ready_o,
  input  logic             rc_sop_i,
  input  logic             rc_eop_i,
  // Completer, tag width and attributes do not matter here.
  /* verilator lint_off UNUSEDSIGNAL */
  input  logic [127:0]     rc_hdr_i,
  /* verilator lint_on UNUSEDSIGNAL */
  input  logic [DataW-1:0] rc_data_i,

  // Time: nothing but the timeout moves while quiet_o.
  output logic             quiet_o,
  output logic             timeout_armed_o,
  output logic [31:0]      timeout_left_o,
  input  logic [63:0]      skip_i,

  output logic             ev_unexpected_o,
  output logic             ev_ur_o,
  output logic             ev_ca_o,
  output logic             ev_poisoned_o,
  output logic             ev_timeout_o
);
  if (DataW != 64 && DataW != 128 && DataW != 256 && DataW != 512) begin : g_bad_width
    $error("%m: DataW (%0d) must be 64, 128, 256 or 512", DataW);
  end
  if (Tags < 2 || Tags > 64 || (Tags & (Tags - 1)) != 0) begin : g_bad_tags
    $error("%m: Tags (%0d) must be a power of two from 2 to 64", Tags);
  end
  if (TimeoutCycles < 64) begin : g_bad_timeout
    $error("%m: TimeoutCycles (%0d) must be at least 64", TimeoutCycles);
  end

  typedef logic [TagW-1:0] tag_t;

  // ---------------------------------------------------------------- issue
  logic [TagW:0] head, tail_q, used_q;   // used_q: head - tail_q
  logic          retire, alloc, alloc_stall, alloc_last, alloc_void, issue_idle, issue_wait, ext_q;
  logic [12:0]   alloc_len;
  logic [15:0]   alloc_ptr;
  logic [ 6:0]   alloc_low;
  dma_dst_e      alloc_dst;
  logic [ 7:0]   alloc_cookie;
  tag_t          alloc_tag, tail_tag;
  assign alloc_tag = head[TagW-1:0];
  assign tail_tag  = tail_q[TagW-1:0];

  dma_read_issue #(.Tags(Tags)) u_issue (
    .clk_i,
    .rst_ni,
    .halt_i,
    .max_read_i,
    .ext_tag_i     (ext_q),
    .used_i        (used_q),
    .head_o        (head),
    .idle_o        (issue_idle),
    .wait_o        (issue_wait),
    .ctl_req_valid_i,
    .ctl_req_ready_o,
    .ctl_req_i,
    .tx_req_valid_i,
    .tx_req_ready_o,
    .tx_req_i,
    .alloc_o       (alloc),
    .alloc_stall_i (alloc_stall),
    .alloc_len_o   (alloc_len),
    .alloc_ptr_o   (alloc_ptr),
    .alloc_low_o   (alloc_low),
    .alloc_dst_o   (alloc_dst),
    .alloc_cookie_o(alloc_cookie),
    .alloc_last_o  (alloc_last),
    .alloc_void_o  (alloc_void),
    .np_valid_o,
    .np_ready_i,
    .np_req_o,
    .np_tag_o
  );

  // Extended tags are switched only while no tag is outstanding.
  always_ff @(posedge clk_i) begin
    if (!rst_ni) ext_q <= 1'b0;
    else if (used_q == '0 && !alloc) ext_q <= ext_tag_i;
  end

  // ---------------------------------------------------------------- S0: the link's beat
  typedef struct packed {
    logic        ours;       // a completion, for this function
    logic        failed;     // not successful, or without data
    logic        aborted;
    logic        ep;
    logic [12:0] span;       // bytes of payload
    logic [12:0] rest;       // bytes still missing, counted from the DW of the first
    logic        sized;      // they end in the payload's last DW, or behind it
    logic [ 7:0] tag;
    logic [ 6:0] low;
  } cpl_t;

  logic             s0_valid_q, s0_sop_q, s0_eop_q;
  cpl_t             s0_q;
  logic [DataW-1:0] s0_data_q;

  assign rc_ready_o = 1'b1;

  wire [12:0] in_span = {rc_hdr_i[9:0] == '0, rc_hdr_i[9:0], 2'b00};
  wire [12:0] in_left = {rc_hdr_i[43:32] == '0, rc_hdr_i[43:32]};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) s0_valid_q <= 1'b0;
    else s0_valid_q <= rc_valid_i;
  end

  always_ff @(posedge clk_i) begin
    s0_sop_q  <= rc_sop_i;
    s0_eop_q  <= rc_eop_i;
    s0_data_q <= rc_data_i;
    if (rc_valid_i && rc_sop_i) begin
      s0_q.ours    <= (rc_hdr_i[31:24] == TlpCplD || rc_hdr_i[31:24] == TlpCpl) &&
                      (rc_hdr_i[95:80] == requester_i);
      s0_q.failed  <= (rc_hdr_i[31:24] != TlpCplD) || (rc_hdr_i[47:45] != CplSc);
      s0_q.aborted <= (rc_hdr_i[47:45] == CplCa);
      s0_q.ep      <= rc_hdr_i[14];
      s0_q.span    <= in_span;
      s0_q.rest    <= in_left + {11'b0, rc_hdr_i[65:64]};
      s0_q.sized   <= in_span < in_left + {10'b0, 1'b1, rc_hdr_i[65:64]};
      s0_q.tag     <= rc_hdr_i[79:72];
      s0_q.low     <= rc_hdr_i[70:64];
    end
  end

  // ---------------------------------------------------------------- S1: look-up and checks
  // What a tag still misses. Lengths and RAM addresses count from the DW of the first byte, as
  // payloads do.
  typedef struct packed {
    logic        ended; // nothing more is expected
    dma_dst_e    dst;
    logic [12:0] rest;  // bytes
    logic [ 6:0] low;   // low address bits of the next byte
    logic [15:0] ptr;   // RAM address of the next byte
  } miss_t;

  miss_t           s1_miss, s1_next;
  tag_t            s1_tag, s2_tag_q;
  logic [TagW:0]   s1_age;

  if (Tags <= 32) begin : g_tag32
    assign s1_tag = s0_q.tag[TagW-1:0];
  end else begin : g_tag64
    // Without extended tags the upper bit is that of the only place among the 32 oldest.
    wire upper = (s0_q.tag[4:0] < tail_tag[4:0]) ? !tail_tag[5] : tail_tag[5];
    assign s1_tag = {ext_q ? s0_q.tag[5] : upper, s0_q.tag[4:0]};
  end
  localparam int unsigned LinkW = (TagW < 5) ? TagW : 5;  // bits of a tag that is not extended
  wire s1_tag_ok = (ext_q && Tags == 64) ? (s0_q.tag[7:6] == '0) : (s0_q.tag[7:LinkW] == '0);

  assign s1_age = {1'b0, s1_tag - tail_tag};
  wire  s1_known = s0_q.ours && s1_tag_ok && (s1_age < used_q) && !s1_miss.ended;

  // All that is missing, or a part of it; a payload of more DWs than are missing fits neither. The
  // last DW may hold up to three bytes more than are missing. What fits says itself how much is
  // missing, so that only two comparisons wait for the look-up.
  wire [12:0] s1_left = s0_q.rest - s0_q.span;      // if a part
  wire s1_part = (s0_q.span < s0_q.rest);
  wire s1_fits = (s0_q.rest == s1_miss.rest) && (s0_q.low == s1_miss.low) && s0_q.sized;

  wire s1_sop   = s0_valid_q && s0_sop_q;
  wire s1_take  = s1_sop && s1_known && (s0_q.failed || s1_fits);
  wire s1_final = s1_take && (s0_q.failed || !s1_part);
  wire s1_write = s1_take && !s0_q.failed && !s0_q.ep;

  always_comb begin
    s1_next       = s1_miss;
    s1_next.ended = s0_q.failed || !s1_part;
    s1_next.rest  = s1_left;
    s1_next.low   = {s1_miss.low[6:2] + s0_q.span[6:2], 2'b00};
    s1_next.ptr   = s1_miss.ptr + {3'b0, s0_q.span};
  end

  // One write port: a completion that was taken goes first, a new tag waits while any begins
  // (whether it is taken is known too late in the cycle), and while the end of one is noted.
  logic s2_ends;
  assign alloc_stall = s1_sop || s2_ends;

  miss_t alloc_miss;
  assign alloc_miss = '{ended: alloc_void, dst: alloc_dst, low: alloc_low, rest: alloc_len,
                        ptr: alloc_ptr};

  prim_lutram #(.Width($bits(miss_t)), .Depth(Tags)) u_miss (
    .clk_i,
    .we_i   (s1_take || alloc),
    .waddr_i(s1_sop ? s1_tag : alloc_tag),
    .wdata_i(s1_sop ? s1_next : alloc_miss),
    .raddr_i(s1_tag),
    .rdata_o(s1_miss)
  );

  // ---------------------------------------------------------------- S2: to the RAM's lanes
  logic             s2_valid_q, s2_eop_q, s2_write_q, s2_final_q, s2_err_q;
  logic             in_pkt_q;      // a completion is under way between S0 and S1
  dma_dst_e         s2_dst_q;
  logic [WordW-1:0] s2_word_q;
  logic [LaneW-1:0] s2_off_q;
  logic [12:0]      s2_end_q;      // payload bytes from this beat on, lead included
  logic [1:0]       s2_lead_q;     // bytes before the first that was asked for
  logic [DataW-1:0] s2_data_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      s2_valid_q <= 1'b0;
      s2_write_q <= 1'b0;
      in_pkt_q   <= 1'b0;
    end else begin
      // The rest of a dropped completion is dropped with it.
      s2_valid_q <= s0_valid_q && (s0_sop_q ? s1_take : in_pkt_q);
      if (s0_valid_q) begin
        in_pkt_q <= !s0_eop_q && (s0_sop_q ? s1_take : in_pkt_q);
        if (s0_sop_q) s2_write_q <= s1_write;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (s0_valid_q) begin
      s2_data_q <= s0_data_q;
      s2_eop_q  <= s0_eop_q;
      if (s0_sop_q) begin
        s2_tag_q   <= s1_tag;
        s2_final_q <= s1_final;
        s2_err_q   <= s0_q.failed || s0_q.ep;
        s2_dst_q   <= s1_miss.dst;
        s2_word_q  <= s1_miss.ptr[15:LaneW];
        s2_off_q   <= s1_miss.ptr[LaneW-1:0];
        s2_lead_q  <= s1_miss.low[1:0];
        s2_end_q   <= s1_part ? s0_q.span : s0_q.rest;
      end else begin
        s2_word_q <= s2_word_q + 1'b1;
        s2_lead_q <= '0;
        s2_end_q  <= (s2_end_q > 13'(Lanes)) ? s2_end_q - 13'(Lanes) : '0;
      end
    end
  end

  // A payload shorter than its header says leaves bytes unread.
  wire s2_short = s2_valid_q && s2_write_q && s2_eop_q && (s2_end_q > 13'(Lanes));

  // Bytes that the request asked for: up to the end, not before the lead.
  wire              s2_whole = |s2_end_q[12:LaneW];
  wire  [Lanes-1:0] s2_below = ~({Lanes{1'b1}} << s2_end_q[LaneW-1:0]);
  wire  [Lanes-1:0] s2_mask  = (s2_whole ? '1 : s2_below) & ({Lanes{1'b1}} << s2_lead_q);
  logic [Lanes-1:0] s2_we, s2_inc;
  logic [DataW-1:0] s2_rotated;
  for (genvar l = 0; l < int'(Lanes); l++) begin : g_lane
    assign s2_we[l]   = s2_mask[LaneW'(l) - s2_off_q];
    assign s2_inc[l]  = ({1'b0, LaneW'(l)} < {1'b0, s2_off_q});
  end

  byte_rotate #(.DataW(DataW)) u_rotate (
    .amount_i(s2_off_q),
    .data_i  (s2_data_q),
    .data_o  (s2_rotated)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) ram_we_o <= '0;
    else ram_we_o <= (s2_valid_q && s2_write_q) ? s2_we : '0;
  end

  always_ff @(posedge clk_i) begin
    ram_dst_o   <= s2_dst_q;
    ram_waddr_o <= s2_word_q;
    ram_winc_o  <= s2_inc;
    ram_wdata_o <= s2_rotated;
  end

  // ---------------------------------------------------------------- timeout of the oldest tag
  // What a tag is for, and in which epoch it was issued.
  typedef struct packed {
    logic [3:0]  epoch;
    dma_dst_e    dst;
    logic        last;
    logic [7:0]  cookie;
  } req_t;
  req_t alloc_req, tail_req;
  localparam int unsigned Tick = (TimeoutCycles + 7) / 8;
  localparam int unsigned TickW = $clog2(Tick + 1);
  logic [TickW-1:0] tick_q;
  logic [3:0]       epoch_q;

  // Cycles that pass in this one.
  wire             skip_far  = (skip_i[63:TickW] != '0) || (skip_i[TickW-1:0] >= tick_q);
  wire [3:0]       epochs    = epoch_q - tail_req.epoch;
  wire             have_tail = (used_q != '0);
  wire             expired   = have_tail && (epochs >= 4'd9) && !timeout_off_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      tick_q  <= TickW'(Tick);
      epoch_q <= '0;
    end else if (!have_tail) begin
      tick_q  <= TickW'(Tick);
    end else if (np_valid_o || np_pending_i) begin
      tick_q  <= tick_q;
    end else if (skip_far) begin
      // The one who skips never goes past timeout_left_o, one tick at a time.
      tick_q  <= TickW'(Tick);
      if (!timeout_off_i && epochs < 4'd9) epoch_q <= epoch_q + 1'b1;
    end else begin
      tick_q  <= tick_q - 1'b1 - skip_i[TickW-1:0];
    end
  end

  // ---------------------------------------------------------------- retirement, in order
  assign alloc_req = '{epoch: epoch_q, dst: alloc_dst, last: alloc_last, cookie: alloc_cookie};

  prim_lutram #(.Width($bits(req_t)), .Depth(Tags)) u_req (
    .clk_i,
    .we_i   (alloc),
    .waddr_i(alloc_tag),
    .wdata_i(alloc_req),
    .raddr_i(tail_tag),
    .rdata_o(tail_req)
  );

  // How a tag ended: noted with the last beat of a completion, and cleared when the tag is taken.
  // A short payload is known then too. Two copies: for the oldest tag, and for what was noted.
  typedef struct packed {
    logic fin;
    logic err;
  } end_t;
  end_t end_new, tail_end, s2_end;
  tag_t end_tag;
  assign s2_ends = s2_valid_q && s2_eop_q;
  assign end_tag = s2_ends ? s2_tag_q : alloc_tag;
  assign end_new = s2_ends ? '{fin: s2_final_q, err: s2_end.err || s2_err_q || s2_short}
                           : '{fin: alloc_void, err: alloc_void};
  prim_lutram #(.Width($bits(end_t)), .Depth(Tags)) u_tail_end (
    .clk_i, .we_i(s2_ends || alloc), .waddr_i(end_tag), .wdata_i(end_new), .raddr_i(tail_tag),
    .rdata_o(tail_end)
  );
  logic unused_fin;
  assign unused_fin = s2_end.fin;
  prim_lutram #(.Width($bits(end_t)), .Depth(Tags)) u_s2_end (
    .clk_i, .we_i(s2_ends || alloc), .waddr_i(end_tag), .wdata_i(end_new), .raddr_i(s2_tag_q),
    .rdata_o(s2_end)
  );

  // Not while payload of the tag is still on its way to the RAM.
  wire tail_moving = (s2_tag_q == tail_tag) && (s2_valid_q || in_pkt_q);
  wire sop_now     = s1_sop && (s1_tag == tail_tag);
  wire tail_fin    = have_tail && tail_end.fin;
  wire tail_lost   = have_tail && !tail_end.fin && !tail_moving && !sop_now && expired;
  assign retire    = tail_fin || tail_lost;

  logic err_sum_q;
  wire  err_now = err_sum_q || tail_end.err || tail_lost;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      tail_q    <= '0;
      used_q    <= '0;
      err_sum_q <= 1'b0;
    end else begin
      used_q <= used_q + (TagW + 1)'(alloc) - (TagW + 1)'(retire);
      if (retire) begin
        tail_q    <= tail_q + 1'b1;
        err_sum_q <= err_now && !tail_req.last;
      end
    end
  end

  dma_rd_done_t done;
  assign done = '{valid: retire && tail_req.last, err: err_now, cookie: tail_req.cookie};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ctl_done_o <= '0;
      tx_done_o  <= '0;
    end else begin
      ctl_done_o       <= done;
      tx_done_o        <= done;
      ctl_done_o.valid <= done.valid && (tail_req.dst == DstCtl);
      tx_done_o.valid  <= done.valid && (tail_req.dst == DstTx);
    end
  end

  // ---------------------------------------------------------------- state for others
  wire rx_busy = s0_valid_q || s2_valid_q || in_pkt_q || (ram_we_o != '0);
  wire pulses  = ctl_done_o.valid || tx_done_o.valid;
  assign idle_o = issue_idle && !rx_busy && !pulses;

  assign quiet_o = issue_wait && !rx_busy && !pulses && !retire;
  assign timeout_armed_o = have_tail && !timeout_off_i;
  assign timeout_left_o  = 32'(tick_q);  // to the next look at the oldest tag

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ev_unexpected_o <= 1'b0;
      ev_ur_o         <= 1'b0;
      ev_ca_o         <= 1'b0;
      ev_poisoned_o   <= 1'b0;
      ev_timeout_o    <= 1'b0;
    end else begin
      ev_unexpected_o <= s1_sop && !s1_take;
      ev_ur_o         <= s1_take && s0_q.failed && !s0_q.aborted;
      ev_ca_o         <= s1_take && s0_q.failed && s0_q.aborted;
      ev_poisoned_o   <= s1_take && s0_q.ep;
      ev_timeout_o    <= tail_lost;
    end
  end

  `FERRONIC_ASSERT(RetireOutstanding, !(retire && used_q == '0), clk_i, rst_ni)
  `FERRONIC_ASSERT(UsedCounted, used_q == head - tail_q, clk_i, rst_ni)
  `FERRONIC_ASSERT(NoSpill, !(s2_valid_q && s2_write_q && (s2_end_q > 13'd4099)), clk_i, rst_ni)
endmodule
