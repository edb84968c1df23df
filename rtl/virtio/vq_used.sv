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
// is HoldCycles (less at most 16) old. Batches do not cross 4 KiB (an entry may: it is then written
// in two halves) and are at most 128 bytes. Throughput 8 bytes a cycle while a batch is written;
// an entry is taken in any cycle but some four of each visit, a cycle late after one of the other
// direction.
//
// What only a visit needs of a queue lies in block RAM: it is read as the visit begins and put back
// as it ends. What an entry needs on its way in is kept in LUT RAM, a few bits.
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
  input  logic        table_ready_i,
  input  logic [63:0] table_addr_i,    // one cycle later

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
  output logic        pub_marker_o,  // over an entry with a marker
  output logic [ 7:0] pub_age_o,     // how long the oldest of them waited here, in 16 cycles

  // Published index, for the check of available indexes.
  input  qid_t        look_q_i,
  output logic [15:0] look_used_o,

  // Everything that was appended when `settle_i` rose is published, if its direction is quiet.
  input  logic        settle_i,
  output logic        settled_o,
  output logic        idle_o
);
  localparam int unsigned PendDepth = 16;
  localparam int unsigned PerBeat = DataW / 64;
  localparam int unsigned AgeShift = 4;  // ages are counted in 16 cycles
  localparam int unsigned AgeW = 8;

  if (HoldCycles >= (1 << (AgeW + AgeShift)) || BatchEntries > PendDepth) begin : g_bad
    $error("%m: HoldCycles (%0d) or BatchEntries (%0d) too large", HoldCycles, BatchEntries);
  end

  typedef enum logic [4:0] {
    StPick, StLoad, StAddress, StDecide, StRead, StWrite, StHalf0, StHalfNext, StHalf1, StMoved,
    StIndexAddr, StIndex, StPublish, StFinish, StEvLoad, StEvAddress, StEvWrite
  } st_e;
  typedef logic [4:0] few_t;       // low bits of an index: at most PendDepth apart
  st_e           st_q;
  qid_t          q_q;
  few_t          app_q;            // low bits of the index behind the last entry that came
  logic [15:0]   tgt_q;            // behind the last entry to publish
  logic [15:0]   wrt_q, pub_q;     // behind the last that was written; that was published
  ring_t         ring_q;
  logic [63:0]   base_q, addr_q;
  logic [ 4:0]   n_q;
  logic [AgeW+AgeShift-1:0] now_q;
  logic [AgeW-1:0] since_q;

  // ---------------------------------------------------------------- appending
  // One direction is looked at; the other when this one has nothing, and in turn while both have,
  // also while the one has no room: the other may have.
  logic     pick_rx_q, list_valid;
  wire      in_valid = pick_rx_q ? rx_valid_i : tx_valid_i;
  vq_used_t in;
  assign in = pick_rx_q ? rx_i : tx_i;
  wire [QW-1:0] in_q = in.q[QW-1:0];
  logic [15:0] app_in;
  few_t        wrt_in, app_l;
  logic        listed;
  // Not PendDepth ahead, which is 16: they differ in the one bit only then.
  wire         room    = (app_in[4] == wrt_in[4]) || (app_in[3:0] != wrt_in[3:0]);
  // Not while the state of a queue is read for a visit or put back after one.
  wire         pause   = (st_q == StPick && list_valid) || (st_q == StMoved) ||
                         (st_q == StPublish) || (st_q == StFinish) || clear_i.valid;
  wire         accept  = in_valid && room && !pause;
  assign rx_ready_o = accept && pick_rx_q;
  assign tx_ready_o = accept && !pick_rx_q;

  wire [QW-1:0] cq = clear_i.q[QW-1:0];
  wire [QW-1:0] vq = q_q[QW-1:0];
  wire app_we = accept || clear_i.valid;
  wire [QW-1:0] app_wq = clear_i.valid ? cq : in_q;
  wire [15:0] app_next = app_in + 16'd1;
  wire [15:0] app_wd = clear_i.valid ? '0 : app_next;

  prim_lutram #(.Width(16), .Depth(NumQueues)) u_app_in (
    .clk_i, .we_i(app_we), .waddr_i(app_wq), .wdata_i(app_wd), .raddr_i(in_q), .rdata_o(app_in));
  prim_lutram #(.Width($bits(few_t)), .Depth(NumQueues)) u_app_l (
    .clk_i, .we_i(app_we), .waddr_i(app_wq), .wdata_i(app_wd[4:0]), .raddr_i(vq),
    .rdata_o(app_l));

  logic [AgeW-1:0] since_l;
  prim_lutram #(.Width(AgeW), .Depth(NumQueues)) u_since (
    .clk_i, .we_i((accept && !listed) || st_q == StPublish),
    .waddr_i((st_q == StPublish) ? vq : in_q), .wdata_i(now_q[AgeShift +: AgeW]),
    .raddr_i(vq), .rdata_o(since_l));

  // Pending entries, by queue and ring index. No length is above 128 KiB - 1, no id above 2,047.
  logic        pend_re, beat_re;
  logic        started_q;  // this visit has written something
  logic [ 3:0] pend_idx_q;
  logic [28:0] pend_rd;
  prim_ram_1r1w #(.Width(29), .Depth(PendDepth * NumQueues)) u_pend (
    .clk_i, .we_i(accept), .waddr_i({in_q, app_in[3:0]}),
    .wdata_i({in.marker, in.len[16:0], in.id[10:0]}),
    .re_i(pend_re), .raddr_i({vq, pend_idx_q}), .rdata_o(pend_rd));

  // ---------------------------------------------------------------- flushing
  logic         list_pop;
  qid_t         list_q;
  wire          look    = list_pop || (st_q == StMoved);
  wire [QW-1:0] look_vq = (st_q == StMoved) ? vq : list_q[QW-1:0];
  logic [15:0]  tgt_l, wrt_l, pub_l;
  logic         marker_l, marker_q;  // of entries that are written and not published
  prim_ram_1r1w #(.Width(16), .Depth(NumQueues), .InBlock(1'b1)) u_target (
    .clk_i, .we_i((accept && in.publish) || clear_i.valid), .waddr_i(app_wq), .wdata_i(app_wd),
    .re_i(look), .raddr_i(look_vq), .rdata_o(tgt_l));
  wire keep = (st_q == StFinish) || clear_i.valid;
  wire [QW-1:0] keep_q = clear_i.valid ? cq : vq;
  prim_ram_1r1w #(.Width(33), .Depth(NumQueues), .InBlock(1'b1)) u_done (
    .clk_i, .we_i(keep), .waddr_i(keep_q),
    .wdata_i(clear_i.valid ? '0 : {marker_q, wrt_q, pub_q}),
    .re_i(list_pop), .raddr_i(list_q[QW-1:0]), .rdata_o({marker_l, wrt_l, pub_l}));

  wire [15:0]   written = wrt_q + {11'd0, n_q};
  wire [15:0]   pub_wd  = clear_i.valid ? '0 : tgt_q;
  ring_t        ring_l;
  prim_lutram #(.Width($bits(few_t)), .Depth(NumQueues)) u_wrt_in (
    .clk_i, .we_i(st_q == StMoved || clear_i.valid), .waddr_i(keep_q),
    .wdata_i(clear_i.valid ? '0 : written[4:0]), .raddr_i(in_q), .rdata_o(wrt_in));
  prim_lutram #(.Width(16), .Depth(NumQueues)) u_pub_look (
    // Before the driver can see it: from then on it may post as many more.
    .clk_i, .we_i(st_q == StIndex || clear_i.valid), .waddr_i(keep_q), .wdata_i(pub_wd),
    .raddr_i(look_q_i[QW-1:0]), .rdata_o(look_used_o));
  prim_lutram #(.Width($bits(ring_t)), .Depth(NumQueues)) u_ring (
    .clk_i, .we_i(cfg_i.we_ring), .waddr_i(cfg_i.q[QW-1:0]), .wdata_i(cfg_i.ring),
    .raddr_i(vq), .rdata_o(ring_l));

  // Work list: a queue is on it, or being visited, from the entry that comes until a visit leaves
  // nothing to do.
  logic list_wr, list_ready;
  qid_t list_wq;
  logic [QW:0] list_level;
  prim_fifo #(.Width(QidW), .Depth(NumQueues)) u_list (
    .clk_i, .rst_ni, .clr_i(fn_rst_i),
    .wr_valid_i(list_wr), .wr_ready_o(list_ready), .wr_data_i(list_wq),
    .rd_valid_o(list_valid), .rd_ready_i(list_pop), .rd_data_o(list_q), .level_o(list_level));
  wire unpub = (tgt_q != pub_q);
  wire still_dirty = unpub || (app_l != wrt_q[4:0]) || (app_l != app_q);
  prim_lutram #(.Width(1), .Depth(NumQueues)) u_listed (
    .clk_i, .we_i(accept || keep), .waddr_i(keep ? keep_q : in_q),
    .wdata_i(!clear_i.valid && (st_q != StFinish || still_dirty)), .raddr_i(in_q),
    .rdata_o(listed));
  assign list_wr  = (st_q == StFinish) ? still_dirty : (accept && !listed);
  assign list_wq  = (st_q == StFinish) ? q_q : in.q;
  assign list_pop = (st_q == StPick) && !event_valid_i && list_valid && table_ready_i;

  wire [10:0] mask   = ring_mask(ring_q);
  wire [10:0] slot   = mask & wrt_q[10:0];
  wire few_t  pend   = app_q - wrt_q[4:0];
  // At most PendDepth ahead and a frame's buffers behind, so few bits tell.
  wire [8:0]  behind = tgt_q[8:0] - wrt_q[8:0]; // 0 or negative: all to publish is written
  wire [8:0]  missing = tgt_q[8:0] - written[8:0];
  wire        short_of_target = (missing != '0) && !missing[8];
  wire        quiet  = q_q[0] ? tx_quiet_i : rx_quiet_i;
  wire [AgeW-1:0] age = now_q[AgeShift +: AgeW] - since_q;
  wire        want   = (pend >= 5'(BatchEntries)) || quiet ||
                       (age >= AgeW'(HoldCycles >> AgeShift));
  wire [10:0] to_end  = mask & ~wrt_q[10:0];    // entries behind this one up to the end
  wire [4:0]  c_wrap  = (|to_end[10:4]) ? 5'd16 : {1'b0, to_end[3:0]} + 5'd1;
  // What does not need the address is worked out while that is.
  logic [4:0] c_most_q;     // entries that wait and lie together
  logic       some_q, want_q, due_q;
  always_ff @(posedge clk_i) begin
    if (st_q == StAddress) begin
      c_most_q <= (pend < c_wrap) ? pend : c_wrap;
      some_q   <= (pend != '0);
      want_q   <= want;
      due_q    <= unpub && (behind == '0 || behind[8]);
    end
  end
  // Whole entries up to the end of the page; the one that it cuts is written in halves.
  wire        near    = &addr_q[11:7];           // 16 entries may not fit in front of it
  wire [4:0]  c_page  = 5'd16 - {1'b0, addr_q[6:3]} - {4'd0, addr_q[2]};
  wire        cut     = (addr_q[11:2] == '1);
  wire [4:0]  c_n     = (near && c_page < c_most_q) ? c_page : c_most_q;

  assign table_re_o = (st_q == StPick) && (event_valid_i || list_valid);
  assign table_q_o  = event_valid_i ? event_q_i : list_q;

  // An entry, the second half of one that 4 KiB cut in two, avail_event behind the last entry, or
  // used.idx at the start.
  wire        to_index = (st_q == StMoved) || (st_q == StIndexAddr);
  wire [15:0] offset = to_index ? '0 : 16'd4 +
      ((st_q == StEvAddress) ? {1'b0, ring_size(ring_q), 3'd0}
                             : {2'd0, slot, (st_q == StHalfNext), 2'b00});
  wire [63:0] address = base_q + {48'd0, offset};

  // ---------------------------------------------------------------- beats
  logic [4:0]       done_n_q;      // entries read
  logic             rd_valid_q;    // RAM output holds an entry
  logic             beat_valid, beat_last, beat_take;
  logic [DataW-1:0] beat;
  wire [63:0] entry = {15'd0, pend_rd[27:11], 21'd0, pend_rd[10:0]};
  wire in_write = (st_q == StWrite);

  if (PerBeat == 1) begin : g_narrow
    assign beat_re    = in_write && (done_n_q != n_q) && (!rd_valid_q || beat_take);
    assign beat_valid = rd_valid_q;
    assign beat_last  = (done_n_q == n_q);
    assign beat       = entry;
    always_ff @(posedge clk_i) begin
      if (!rst_ni || fn_rst_i || !in_write) rd_valid_q <= 1'b0;
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
      if (!rst_ni || fn_rst_i || !in_write) begin
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

  // Writes of one DW: their valid in a register too, as all that is written waits for it.
  logic single_q;
  wire  index_now = unpub && !short_of_target;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || fn_rst_i) single_q <= 1'b0;
    else if (single_q) single_q <= !wr_ready_i;
    else single_q <= (st_q == StRead) || (st_q == StHalfNext) || (st_q == StIndexAddr) ||
                     (st_q == StEvAddress) || (st_q == StMoved && index_now);
  end
  assign wr_valid_o = beat_valid || single_q;

  always_comb begin
    wr_last_o  = 1'b1;
    wr_hdr_o   = '{addr: addr_q[63:2], dw_len: 6'd1, first_be: 4'b1111, last_be: 4'b0000};
    // Single DWs: an index (both of its places hold it), or half of an entry.
    wr_data_o       = beat;
    wr_data_o[31:0] = (st_q == StWrite) ? beat[31:0] :
                      (st_q == StHalf0) ? entry[31:0] :
                      (st_q == StHalf1) ? entry[63:32] : {tgt_q, tgt_q};
    unique case (st_q)
      StWrite: begin
        wr_last_o         = beat_last;
        wr_hdr_o.dw_len   = {n_q, 1'b0};
        wr_hdr_o.last_be  = 4'b1111;
      end
      StIndex:   wr_hdr_o.first_be = 4'b1100;
      StEvWrite: wr_hdr_o.first_be = 4'b0011;
      default: ;
    endcase
  end
  assign event_ready_o = (st_q == StEvWrite) && wr_ready_i;
  assign pub_valid_o   = (st_q == StPublish);
  assign pub_q_o       = q_q;
  assign pub_idx_o     = tgt_q;
  assign pub_marker_o  = marker_q;
  assign pub_age_o     = age;
  assign idle_o        = (st_q == StPick) && !list_valid && !event_valid_i && !rx_valid_i &&
                         !tx_valid_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      st_q      <= StPick;
      pick_rx_q <= 1'b1;
      now_q     <= '0;
    end else if (fn_rst_i) begin
      st_q      <= StPick;
      pick_rx_q <= 1'b1;
    end else begin
      now_q <= now_q + 1'b1;
      if (pick_rx_q ? tx_valid_i : rx_valid_i) pick_rx_q <= !pick_rx_q;
      unique case (st_q)
        StPick: begin
          if (event_valid_i && table_ready_i) st_q <= StEvLoad;
          else if (list_pop) st_q <= StLoad;
        end
        StLoad: st_q <= StAddress;
        StAddress: st_q <= StDecide;
        StDecide: begin
          if (due_q && (want_q || started_q)) st_q <= StIndexAddr;
          else if (some_q && want_q) st_q <= cut ? StRead : StWrite;
          else st_q <= StFinish;
        end
        StRead: st_q <= StHalf0;
        StWrite: if (beat_take && beat_last) st_q <= StMoved;
        StHalf0: if (wr_ready_i) st_q <= StHalfNext;
        StHalfNext: st_q <= StHalf1;
        StHalf1: if (wr_ready_i) st_q <= StMoved;
        // What this batch completes is published at once.
        StMoved: st_q <= index_now ? StIndex : StLoad;
        StIndexAddr: st_q <= StIndex;
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

  logic pend_got_q;
  always_ff @(posedge clk_i) begin
    pend_got_q <= pend_re;
    if (pend_got_q && pend_rd[28]) marker_q <= 1'b1;
    unique case (st_q)
      StPick: begin
        q_q       <= event_valid_i ? event_q_i : list_q;
        started_q <= 1'b0;
      end
      StLoad: begin
        app_q   <= app_l;
        tgt_q   <= tgt_l;
        since_q <= since_l;
        if (!started_q) begin
          wrt_q  <= wrt_l;
          pub_q  <= pub_l;
          marker_q <= marker_l;
          ring_q <= ring_l;
          base_q <= table_addr_i;
        end
      end
      StAddress: begin
        addr_q     <= address;
        pend_idx_q <= wrt_q[3:0];
        done_n_q   <= '0;
      end
      StDecide: n_q <= cut ? 5'd1 : c_n;
      StMoved: begin
        started_q <= 1'b1;
        wrt_q     <= written;
        addr_q    <= address;
      end
      StPublish: begin
        pub_q <= tgt_q;
        if (pub_ready_i) marker_q <= 1'b0;
      end
      StWrite: begin
        if (beat_re) begin
          pend_idx_q <= pend_idx_q + 4'd1;
          done_n_q   <= done_n_q + 5'd1;
        end
      end
      StEvLoad: begin
        ring_q <= ring_l;
        base_q <= table_addr_i;
        tgt_q  <= event_idx_i;
      end
      StHalfNext, StIndexAddr, StEvAddress: addr_q <= address;
      default: ;
    endcase
  end

  // Every queue on the list, the one that is visited now, and that once more.
  logic        settling_q;
  logic [QW+1:0] visits_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || fn_rst_i) settling_q <= 1'b0;
    else settling_q <= settle_i && (settling_q || !rx_valid_i);
    if (!settling_q) visits_q <= {1'b0, list_level} + (QW + 2)'(2);
    else if (st_q == StFinish && visits_q != '0) visits_q <= visits_q - 1'b1;
  end
  assign settled_o = settling_q && ((visits_q == '0) || (st_q == StPick && !list_valid));

  `FERRONIC_ASSERT(ListFits, !list_wr || list_ready, clk_i, rst_ni)
  `FERRONIC_ASSERT_STABLE(WrStable, wr_valid_o, wr_ready_i || fn_rst_i, {wr_hdr_o, wr_last_o},
                          clk_i, rst_ni)
  `FERRONIC_ASSERT(SingleInItsState,
                   single_q == (st_q inside {StHalf0, StHalf1, StIndex, StEvWrite}), clk_i, rst_ni)
  `FERRONIC_ASSERT(BeatInItsState, !beat_valid || st_q == StWrite, clk_i, rst_ni)
  `FERRONIC_ASSERT(PublishedIsWritten, !(st_q == StIndex) || ((wrt_q - tgt_q) < 16'h8000),
                   clk_i, rst_ni)

  `FERRONIC_ASSERT(IdsFit, !accept || (in.id[15:11] == '0 && in.len[31:17] == '0), clk_i, rst_ni)

  logic unused;
  assign unused = ^{addr_q[1:0], base_q[1:0], cfg_i, look_q_i, q_q, list_q,
                    in.id[15:11], in.len[31:17]};
endmodule
