// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Used rings: collects used entries per queue, writes them to host memory in batches, and then
// moves used.idx over all entries that were published, with one write (virtio 1.2, "The Virtqueue
// Used Ring"). Also writes avail_event for vq_avail, through the same port.
//
// Entries may be written to the ring before they are published; the driver sees none before
// used.idx moves, so the buffers of one frame, however many, appear at once.
//
// A queue is flushed when BatchEntries wait, when its direction is quiet, or when the oldest entry
// is HoldCycles old. Batches do not cross 4 KiB (an entry may: it is then written in two halves)
// and are at most 128 bytes. Throughput 8 bytes a cycle while a batch is written.
`include "ferronic_assert.svh"
module vq_used
  import ferronic_pkg::*;
  import vq_pkg::*;
#(
  parameter int unsigned DataW = 64,
  parameter int unsigned NumQueues = 8,
  parameter int unsigned BatchEntries = 8,
  parameter int unsigned HoldCycles = 1024,
  localparam int unsigned QW = $clog2(NumQueues)
) (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic        fn_rst_i,
  input  vq_clear_t   clear_i,
  input  vq_cfg_t     cfg_i,

  input  logic        rx_valid_i,
  output logic        rx_ready_o,
  input  vq_used_t    rx_i,
  input  logic        rx_quiet_i,    // nothing more is about to come from the receive path
  input  logic        tx_valid_i,
  output logic        tx_ready_o,
  input  vq_used_t    tx_i,
  input  logic        tx_quiet_i,

  // avail_event writes.
  input  logic        event_valid_i,
  output logic        event_ready_o,
  input  qid_t        event_q_i,
  input  logic [15:0] event_idx_i,

  output logic        table_re_o,
  output qid_t        table_q_o,
  input  logic [63:0] table_addr_i,

  output logic             wr_valid_o,
  input  logic             wr_ready_i,
  output ctl_wr_hdr_t      wr_hdr_o,
  output logic             wr_last_o,
  output logic [DataW-1:0] wr_data_o,

  // A queue's used.idx has moved.
  output logic        pub_valid_o,
  input  logic        pub_ready_i,
  output qid_t        pub_q_o,
  output logic [15:0] pub_idx_o,

  // Published index, for the check of available indexes.
  input  qid_t        look_q_i,
  output logic [15:0] look_used_o,

  output logic        idle_o
);
  localparam int unsigned PendDepth = 16;
  localparam int unsigned PerBeat = DataW / 64;
  localparam int unsigned AgeW = 12;

  if (HoldCycles >= (1 << AgeW) || BatchEntries > PendDepth) begin : g_bad
    $error("%m: HoldCycles (%0d) or BatchEntries (%0d) too large", HoldCycles, BatchEntries);
  end

  typedef enum logic [3:0] {
    StPick, StLoad, StAddress, StDecide, StRead, StWrite, StHalf0, StHalfNext, StHalf1, StMoved,
    StIndex, StPublish, StFinish, StEvLoad, StEvAddress, StEvWrite
  } st_e;
  st_e           st_q;
  qid_t          q_q;
  logic [15:0]   app_q, tgt_q, wrt_q, pub_q;
  logic [10:0]   mask_q;
  logic [63:0]   base_q, addr_q;
  logic [ 4:0]   n_q;
  logic [AgeW-1:0] now_q, since_q;

  // ---------------------------------------------------------------- appending
  logic     last_rx_q;
  wire      pick_rx = rx_valid_i && (!tx_valid_i || !last_rx_q);
  vq_used_t in;
  assign in = pick_rx ? rx_i : tx_i;
  wire [QW-1:0] in_q = in.q[QW-1:0];
  logic [15:0] app_in, tgt_in, wrt_in, pub_in, app_l, tgt_l;
  wire [15:0] pend_in = app_in - wrt_in;
  wire        room    = (pend_in != 16'(PendDepth));
  wire        accept  = (rx_valid_i || tx_valid_i) && room && (st_q != StFinish) &&
                        (st_q != StPublish) && !clear_i.valid;
  wire        clean   = (app_in == wrt_in) && (tgt_in == pub_in);
  assign rx_ready_o = accept && pick_rx;
  assign tx_ready_o = accept && !pick_rx;

  wire [QW-1:0] cq = clear_i.q[QW-1:0];
  wire app_we = accept || clear_i.valid;
  wire tgt_we = (accept && in.publish) || clear_i.valid;
  wire [QW-1:0] app_wq = clear_i.valid ? cq : in_q;
  wire [15:0] app_next = app_in + 16'd1;
  wire [15:0] app_wd = clear_i.valid ? '0 : app_next;

  prim_lutram #(.Width(16), .Depth(NumQueues)) u_app_in (
    .clk_i, .we_i(app_we), .waddr_i(app_wq), .wdata_i(app_wd), .raddr_i(in_q), .rdata_o(app_in));
  prim_lutram #(.Width(16), .Depth(NumQueues)) u_app_l (
    .clk_i, .we_i(app_we), .waddr_i(app_wq), .wdata_i(app_wd), .raddr_i(q_q[QW-1:0]),
    .rdata_o(app_l));
  prim_lutram #(.Width(16), .Depth(NumQueues)) u_tgt_in (
    .clk_i, .we_i(tgt_we), .waddr_i(app_wq), .wdata_i(app_wd), .raddr_i(in_q), .rdata_o(tgt_in));
  prim_lutram #(.Width(16), .Depth(NumQueues)) u_tgt_l (
    .clk_i, .we_i(tgt_we), .waddr_i(app_wq), .wdata_i(app_wd), .raddr_i(q_q[QW-1:0]),
    .rdata_o(tgt_l));

  logic [AgeW-1:0] since_l;
  prim_lutram #(.Width(AgeW), .Depth(NumQueues)) u_since (
    .clk_i, .we_i((accept && clean) || st_q == StPublish),
    .waddr_i((st_q == StPublish) ? q_q[QW-1:0] : in_q), .wdata_i(now_q),
    .raddr_i(q_q[QW-1:0]), .rdata_o(since_l));

  // Pending entries, by queue and ring index.
  logic        pend_re, beat_re;
  logic        started_q;  // this visit has begun to flush
  logic [15:0] pend_idx_q;
  logic [47:0] pend_rd;
  prim_ram_1r1w #(.Width(48), .Depth(PendDepth * NumQueues)) u_pend (
    .clk_i, .we_i(accept), .waddr_i({in_q, app_in[3:0]}), .wdata_i({in.len, in.id}),
    .re_i(pend_re), .raddr_i({q_q[QW-1:0], pend_idx_q[3:0]}), .rdata_o(pend_rd));

  // ---------------------------------------------------------------- flushing
  wire [15:0]   written = wrt_q + {11'd0, n_q};
  wire          moved   = (st_q == StMoved);
  wire          publish = (st_q == StPublish) && pub_ready_i;
  wire [QW-1:0] wrt_wq  = clear_i.valid ? cq : q_q[QW-1:0];
  wire [15:0]   wrt_wd  = clear_i.valid ? '0 : written;
  wire [15:0]   pub_wd  = clear_i.valid ? '0 : tgt_q;
  logic [15:0]  wrt_l, pub_l;
  logic [10:0]  mask_l;
  prim_lutram #(.Width(16), .Depth(NumQueues)) u_wrt_in (
    .clk_i, .we_i(moved || clear_i.valid), .waddr_i(wrt_wq), .wdata_i(wrt_wd), .raddr_i(in_q),
    .rdata_o(wrt_in));
  prim_lutram #(.Width(16), .Depth(NumQueues)) u_wrt_l (
    .clk_i, .we_i(moved || clear_i.valid), .waddr_i(wrt_wq), .wdata_i(wrt_wd),
    .raddr_i(q_q[QW-1:0]), .rdata_o(wrt_l));
  prim_lutram #(.Width(16), .Depth(NumQueues)) u_pub_in (
    .clk_i, .we_i(publish || clear_i.valid), .waddr_i(wrt_wq), .wdata_i(pub_wd), .raddr_i(in_q),
    .rdata_o(pub_in));
  prim_lutram #(.Width(16), .Depth(NumQueues)) u_pub_l (
    .clk_i, .we_i(publish || clear_i.valid), .waddr_i(wrt_wq), .wdata_i(pub_wd),
    .raddr_i(q_q[QW-1:0]), .rdata_o(pub_l));
  prim_lutram #(.Width(16), .Depth(NumQueues)) u_pub_look (
    // Before the driver can see it: from then on it may post as many more.
    .clk_i, .we_i(st_q == StIndex || clear_i.valid), .waddr_i(wrt_wq), .wdata_i(pub_wd),
    .raddr_i(look_q_i[QW-1:0]), .rdata_o(look_used_o));
  prim_lutram #(.Width(11), .Depth(NumQueues)) u_mask (
    .clk_i, .we_i(cfg_i.we_size), .waddr_i(cfg_i.q[QW-1:0]), .wdata_i(cfg_i.mask),
    .raddr_i(q_q[QW-1:0]), .rdata_o(mask_l));

  // Work list: a queue is on it exactly while it is not clean.
  logic list_wr, list_ready, list_valid, list_pop;
  qid_t list_q, list_wq;
  logic [QW:0] list_level;
  prim_fifo #(.Width(QidW), .Depth(NumQueues)) u_list (
    .clk_i, .rst_ni, .clr_i(fn_rst_i),
    .wr_valid_i(list_wr), .wr_ready_o(list_ready), .wr_data_i(list_wq),
    .rd_valid_o(list_valid), .rd_ready_i(list_pop), .rd_data_o(list_q), .level_o(list_level));
  wire still_dirty = (app_l != wrt_l) || (tgt_l != pub_l);
  // A queue being served lists itself again at the end, if need be.
  logic serving_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) serving_q <= 1'b0;
    else if (fn_rst_i || st_q == StFinish) serving_q <= 1'b0;
    else if (list_pop) serving_q <= 1'b1;
  end
  wire served = serving_q && (in.q == q_q);
  assign list_wr  = (st_q == StFinish) ? still_dirty : (accept && clean && !served);
  assign list_wq  = (st_q == StFinish) ? q_q : in.q;
  assign list_pop = (st_q == StPick) && !event_valid_i && list_valid;

  wire [10:0] slot   = wrt_q[10:0] & mask_q;
  wire [15:0] pend   = app_q - wrt_q;
  wire [15:0] behind = tgt_q - wrt_q;           // 0 or negative: all that is published is written
  wire        unpub  = (tgt_q != pub_q);
  wire [15:0] missing = tgt_q - written;
  wire        short_of_target = (missing != '0) && !missing[15];
  wire        quiet  = q_q[0] ? tx_quiet_i : rx_quiet_i;
  wire [AgeW-1:0] age = now_q - since_q;
  wire        want   = (pend >= 16'(BatchEntries)) || quiet || (age >= AgeW'(HoldCycles));
  wire [11:0] to_wrap = {1'b0, mask_q} + 12'd1 - {1'b0, slot};
  wire [4:0]  c_pend  = (pend > 16'(PendDepth)) ? 5'(PendDepth) : pend[4:0];
  wire [4:0]  c_wrap  = (to_wrap > 12'd16) ? 5'd16 : to_wrap[4:0];
  // What does not need the address is worked out while that is.
  logic [4:0] c_most_q;     // entries that wait and lie together
  logic       some_q, want_q, due_q;
  always_ff @(posedge clk_i) begin
    if (st_q == StAddress) begin
      c_most_q <= (c_pend < c_wrap) ? c_pend : c_wrap;
      some_q   <= (pend != '0);
      want_q   <= want;
      due_q    <= unpub && (behind == '0 || behind[15]);
    end
  end
  // Whole entries up to the end of the page; the one that it cuts is written in halves.
  wire [9:0]  to_page = 10'd512 - {1'b0, addr_q[11:3]} - {9'd0, addr_q[2]};
  wire        cut     = (addr_q[11:2] == '1);
  wire [4:0]  c_page  = (to_page > 10'd16) ? 5'd16 : to_page[4:0];
  wire [4:0]  c_n     = (c_most_q < c_page) ? c_most_q : c_page;

  assign table_re_o = (st_q == StPick);
  assign table_q_o  = event_valid_i ? event_q_i : list_q;

  // An entry, the second half of one that 4 KiB cut in two, or avail_event behind the last entry.
  wire [15:0] offset = (st_q == StEvAddress) ? 16'd12 + {2'd0, mask_q, 3'd0}
                                             : {2'd0, slot, (st_q == StHalfNext), 2'b00} + 16'd4;
  wire [63:0] address = base_q + {48'd0, offset};

  // ---------------------------------------------------------------- beats
  logic [4:0]       done_n_q;      // entries read
  logic             rd_valid_q;    // RAM output holds an entry
  logic             beat_valid, beat_last, beat_take;
  logic [DataW-1:0] beat;
  wire [63:0] entry = {pend_rd[47:16], 16'd0, pend_rd[15:0]};
  wire in_write = (st_q == StWrite);

  if (PerBeat == 1) begin : g_narrow
    assign beat_re    = in_write && (done_n_q != n_q) && (!rd_valid_q || beat_take);
    assign beat_valid = rd_valid_q && in_write;
    assign beat_last  = (done_n_q == n_q);
    assign beat       = entry;
    always_ff @(posedge clk_i) begin
      if (!in_write) rd_valid_q <= 1'b0;
      else if (beat_re) rd_valid_q <= 1'b1;
      else if (beat_take) rd_valid_q <= 1'b0;
    end
  end else begin : g_wide
    localparam int unsigned FillW = $clog2(PerBeat) + 1;
    logic [PerBeat-1:0][63:0] slots_q;
    logic [FillW-1:0]         fill_q;
    logic                     last_q;
    wire full = (fill_q == FillW'(PerBeat)) || (last_q && fill_q != '0);
    assign beat_re    = in_write && (done_n_q != n_q) && !full &&
                        !(rd_valid_q && fill_q == FillW'(PerBeat - 1));
    assign beat_valid = full && !rd_valid_q;
    assign beat_last  = last_q;
    assign beat       = slots_q;
    always_ff @(posedge clk_i) begin
      rd_valid_q <= beat_re;
      if (rd_valid_q) slots_q[fill_q[FillW-2:0]] <= entry;
      if (!in_write) begin
        fill_q     <= '0;
        last_q     <= 1'b0;
        rd_valid_q <= 1'b0;
      end else begin
        if (rd_valid_q) begin
          fill_q <= fill_q + 1'b1;
          last_q <= (done_n_q == n_q);
        end
        if (beat_take) fill_q <= '0;
      end
    end
  end

  assign beat_take = beat_valid && wr_ready_i;
  assign pend_re   = beat_re || (st_q == StRead);

  always_comb begin
    wr_valid_o = 1'b0;
    wr_last_o  = 1'b1;
    wr_hdr_o   = '{addr: addr_q[63:2], dw_len: 6'd1, first_be: 4'b1111, last_be: 4'b0000};
    wr_data_o  = '0;
    unique case (st_q)
      StWrite: begin
        wr_valid_o        = beat_valid;
        wr_last_o         = beat_last;
        wr_hdr_o.dw_len   = {n_q, 1'b0};
        wr_hdr_o.last_be  = 4'b1111;
        wr_data_o         = beat;
      end
      StHalf0: begin
        wr_valid_o      = 1'b1;
        wr_data_o[31:0] = entry[31:0];
      end
      StHalf1: begin
        wr_valid_o      = 1'b1;
        wr_data_o[31:0] = entry[63:32];
      end
      StIndex: begin
        wr_valid_o        = 1'b1;
        wr_hdr_o.addr     = base_q[63:2];
        wr_hdr_o.first_be = 4'b1100;
        wr_data_o[31:0]   = {tgt_q, 16'd0};
      end
      StEvWrite: begin
        wr_valid_o        = 1'b1;
        wr_hdr_o.first_be = 4'b0011;
        wr_data_o[31:0]   = {16'd0, event_idx_i};
      end
      default: ;
    endcase
  end
  assign event_ready_o = (st_q == StEvWrite) && wr_ready_i;
  assign pub_valid_o   = (st_q == StPublish);
  assign pub_q_o       = q_q;
  assign pub_idx_o     = tgt_q;
  assign idle_o        = (st_q == StPick) && !list_valid && !event_valid_i && !rx_valid_i &&
                         !tx_valid_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      st_q      <= StPick;
      last_rx_q <= 1'b0;
      now_q     <= '0;
    end else if (fn_rst_i) begin
      st_q      <= StPick;
      last_rx_q <= 1'b0;
    end else begin
      now_q <= now_q + 1'b1;
      // In turn, also while the one has no room: the other may have.
      if (rx_valid_i || tx_valid_i) last_rx_q <= pick_rx;
      unique case (st_q)
        StPick: begin
          if (event_valid_i) st_q <= StEvLoad;
          else if (list_valid) st_q <= StLoad;
        end
        StLoad: st_q <= StAddress;
        StAddress: st_q <= StDecide;
        StDecide: begin
          if (due_q && (want_q || started_q)) st_q <= StIndex;
          else if (some_q && want_q) st_q <= cut ? StRead : StWrite;
          else st_q <= StFinish;
        end
        StRead: st_q <= StHalf0;
        StWrite: if (beat_take && beat_last) st_q <= StMoved;
        StHalf0: if (wr_ready_i) st_q <= StHalfNext;
        StHalfNext: st_q <= StHalf1;
        StHalf1: if (wr_ready_i) st_q <= StMoved;
        // What this batch completes is published at once.
        StMoved: st_q <= (unpub && !short_of_target) ? StIndex : StLoad;
        StIndex: if (wr_ready_i) st_q <= StPublish;
        StPublish: if (pub_ready_i) st_q <= StFinish;
        StFinish: st_q <= StPick;
        StEvLoad: st_q <= StEvAddress;
        StEvAddress: st_q <= StEvWrite;
        StEvWrite: if (wr_ready_i) st_q <= StPick;
        default: st_q <= StPick;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    unique case (st_q)
      StPick: begin
        q_q       <= event_valid_i ? event_q_i : list_q;
        started_q <= 1'b0;
      end
      StLoad: begin
        app_q   <= app_l;
        tgt_q   <= tgt_l;
        wrt_q   <= wrt_l;
        pub_q   <= pub_l;
        mask_q  <= mask_l;
        base_q  <= table_addr_i;
        since_q <= since_l;
      end
      StAddress: begin
        addr_q     <= address;
        pend_idx_q <= wrt_q;
        done_n_q   <= '0;
      end
      StDecide: n_q <= cut ? 5'd1 : c_n;
      StMoved: begin
        started_q <= 1'b1;
        wrt_q     <= written;
      end
      StWrite: begin
        if (beat_re) begin
          pend_idx_q <= pend_idx_q + 16'd1;
          done_n_q   <= done_n_q + 5'd1;
        end
      end
      StEvLoad: begin
        mask_q <= mask_l;
        base_q <= table_addr_i;
      end
      StHalfNext, StEvAddress: addr_q <= address;
      default: ;
    endcase
  end

  `FERRONIC_ASSERT(ListFits, !list_wr || list_ready, clk_i, rst_ni)
  `FERRONIC_ASSERT_STABLE(WrStable, wr_valid_o, wr_ready_i || fn_rst_i, {wr_hdr_o, wr_last_o},
                          clk_i, rst_ni)
  `FERRONIC_ASSERT(PublishedIsWritten, !(st_q == StIndex) || ((wrt_q - tgt_q) < 16'h8000),
                   clk_i, rst_ni)

  logic unused;
  assign unused = ^{list_level, addr_q[1:0], base_q[1:0], cfg_i, look_q_i, q_q, list_q};
endmodule
