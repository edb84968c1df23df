// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Prefetch RAM of one direction and the walk along descriptor chains: gives the data path one
// buffer at a time as a stream of segments, whatever the ring looks like (the ring-neutral token).
//
// Heads are stored in ring order, Depth for each queue, addressed by the available index itself, so
// the pointers are ring indexes (their low bits): `wr` (stored), `commit` (taken for good; vq_avail
// may refill), and the one walking pointer of the queue being served. A rewind gives back what was
// taken since the last commit.
//
// A chain is followed in windows: up to ChainWindow descriptors are read at once, in the hope that
// `next` counts upwards, as drivers mostly do; an indirect table is read WindowMax entries at once.
// For transmit vq_chain_ahead has read the first part before.
//
// One buffer of one segment takes 4 cycles. A chain of more than the ring's size, a number outside
// the table, a wrong direction, nesting, or length 0 is an error: the walk answers `err` and the
// device stops (virtio 1.2, "The Virtqueue Descriptor Table" and "Indirect Descriptors").
`include "ferronic_assert.svh"
module vq_walker
  import ferronic_pkg::*;
  import vq_pkg::*;
#(
  parameter int unsigned NumQueues = 8,
  parameter int unsigned Depth = 32,
  parameter bit          IsRx = 1'b1,      // buffers are written by the device
  localparam int unsigned Pairs = NumQueues / 2,
  localparam int unsigned PW = (Pairs > 1) ? $clog2(Pairs) : 1
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic         fn_rst_i,
  input  vq_clear_t    clear_i,
  input  vq_cfg_t      cfg_i,
  input  logic         indirect_i,   // INDIRECT_DESC negotiated
  input  logic         run_i,

  input  logic         head_valid_i,
  input  qid_t         head_q_i,
  input  vq_head_t     head_i,

  input  logic         buf_req_valid_i,
  output logic         buf_req_ready_o,
  input  qid_t         buf_req_q_i,
  output logic         seg_valid_o,
  input  logic         seg_ready_i,
  output vq_seg_t      seg_o,
  input  logic         commit_i,     // pulses; the queue is that of the last request
  input  logic         rewind_i,

  // A queue has something (pulse); whether, and how many buffers (combinational look-up).
  output logic         work_valid_o,
  output qid_t         work_q_o,
  input  qid_t         check_q_i,
  output logic         check_has_o,
  output vq_ptr_t      check_count_o,

  output logic         credit_valid_o,
  input  logic         credit_ready_i,
  output qid_t         credit_q_o,
  input  qid_t         look_q_i,
  output vq_ptr_t      look_commit_o,

  output logic         rd_valid_o,
  input  logic         rd_ready_i,
  output vq_rd_t       rd_o,
  input  dma_rd_done_t done_i,
  output logic         ram_req_o,
  output logic [8:0]   ram_addr_o,
  input  logic         ram_gnt_i,
  input  logic         ram_valid_i,
  input  logic [63:0]  ram_data_i,

  output logic         error_o,
  output qid_t         error_q_o,
  output logic         idle_o
);
  localparam int unsigned DW = $clog2(Depth);
  localparam int unsigned WindowMax = 16;
  localparam int unsigned ChainWindow = 4;
  localparam vq_client_e Client = IsRx ? ClChainRx : ClChainTx;
  localparam logic [11:0] Buffer = IsRx ? CtlChainRx : CtlChainTx;

  if (Depth != (1 << DW) || Depth < 16 || 2 * Depth > (1 << $bits(vq_ptr_t))) begin : g_bad_depth
    $error("%m: Depth (%0d) must be a power of two, 16 to %0d", Depth, 1 << $bits(vq_ptr_t) - 1);
  end

  typedef enum logic [3:0] {
    StIdle, StCheck, StHead, StSegment, StFollow, StFetch, StFetchWait, StWord0, StWord1, StWord2,
    StEmit, StNone, StError
  } st_e;
  st_e          st_q;
  qid_t         q_q;
  logic         spec_q;             // something is taken and not committed
  vq_ptr_t      ptr_q;              // index of the head to take next, if spec_q
  vq_desc_t     d_q;                // descriptor at hand
  logic [10:0]  id_q;
  logic         marker_q;
  logic         in_table_q;         // walking an indirect table
  logic [63:0]  table_q;            // its address
  logic [11:0]  size_q;             // descriptors in the ring
  logic [11:0]  limit_q;            // in the table or ring
  logic [11:0]  count_q;            // descriptors walked
  logic [11:0]  want_q;             // next descriptor's number
  logic [11:0]  win_base_q;
  logic [ 4:0]  win_count_q;        // 0: nothing in the window
  logic         done_q, done_err_q;
  ring_t        ring;
  vq_ptr_t      wr_rd, commit_rd, wr_old, wr_check, commit_check;
  vq_seg_t      seg_q;
  logic [63:0]  word0_q;

  wire [PW-1:0] head_p  = head_q_i[PW:1];
  wire [PW-1:0] walk_p  = q_q[PW:1];
  wire [PW-1:0] clear_p = clear_i.q[PW:1];
  wire          clear   = clear_i.valid && (clear_i.q[0] == !IsRx);
  wire          store   = head_valid_i && (head_q_i[0] == !IsRx);

  // ---------------------------------------------------------------- heads and pointers
  vq_head_t head_rd;
  logic     head_re, ahead_re;
  vq_ptr_t  take_idx, ahead_idx;
  prim_ram_1r1w #(.Width($bits(vq_head_t)), .Depth(Pairs * Depth)) u_heads (
    .clk_i,
    .we_i   (store),
    .waddr_i(($clog2(Pairs * Depth))'({head_p, wr_old[DW-1:0]})),
    .wdata_i(head_i),
    .re_i   (head_re),
    .raddr_i(($clog2(Pairs * Depth))'({walk_p, (st_q == StCheck) ? take_idx[DW-1:0]
                                                                 : ahead_idx[DW-1:0]})),
    .rdata_o(head_rd)
  );

  logic          wr_we;
  logic [PW-1:0] wr_addr;
  vq_ptr_t       wr_data;
  assign wr_we   = store || clear;
  assign wr_addr = clear ? clear_p : head_p;
  assign wr_data = clear ? '0 : wr_old + 1'b1;
  prim_lutram #(.Width($bits(vq_ptr_t)), .Depth(1 << PW)) u_wr_own (
    .clk_i, .we_i(wr_we), .waddr_i(wr_addr), .wdata_i(wr_data),
    .raddr_i(head_p), .rdata_o(wr_old)
  );
  prim_lutram #(.Width($bits(vq_ptr_t)), .Depth(1 << PW)) u_wr_walk (
    .clk_i, .we_i(wr_we), .waddr_i(wr_addr), .wdata_i(wr_data),
    .raddr_i(walk_p), .rdata_o(wr_rd)
  );
  prim_lutram #(.Width($bits(vq_ptr_t)), .Depth(1 << PW)) u_wr_check (
    .clk_i, .we_i(wr_we), .waddr_i(wr_addr), .wdata_i(wr_data),
    .raddr_i(check_q_i[PW:1]), .rdata_o(wr_check)
  );

  logic          cm_we;
  logic [PW-1:0] cm_addr;
  vq_ptr_t       cm_data;
  wire           do_commit = commit_i && spec_q;
  assign cm_we   = do_commit || clear;
  assign cm_addr = clear ? clear_p : walk_p;
  assign cm_data = clear ? '0 : ptr_q;
  prim_lutram #(.Width($bits(vq_ptr_t)), .Depth(1 << PW)) u_cm_walk (
    .clk_i, .we_i(cm_we), .waddr_i(cm_addr), .wdata_i(cm_data),
    .raddr_i(walk_p), .rdata_o(commit_rd)
  );
  prim_lutram #(.Width($bits(vq_ptr_t)), .Depth(1 << PW)) u_cm_look (
    .clk_i, .we_i(cm_we), .waddr_i(cm_addr), .wdata_i(cm_data),
    .raddr_i(look_q_i[PW:1]), .rdata_o(look_commit_o)
  );
  prim_lutram #(.Width($bits(vq_ptr_t)), .Depth(1 << PW)) u_cm_check (
    .clk_i, .we_i(cm_we), .waddr_i(cm_addr), .wdata_i(cm_data),
    .raddr_i(check_q_i[PW:1]), .rdata_o(commit_check)
  );

  prim_lutram #(.Width($bits(ring_t)), .Depth(1 << PW)) u_ring (
    .clk_i, .we_i(cfg_i.we_ring && cfg_i.q[0] == !IsRx), .waddr_i(cfg_i.q[PW:1]),
    .wdata_i(cfg_i.ring), .raddr_i(walk_p), .rdata_o(ring)
  );
  wire enabled = (ring != RingOff);

  assign work_valid_o = store && !fn_rst_i;
  assign work_q_o     = head_q_i;
  assign check_has_o  = (wr_check != commit_check);
  assign check_count_o = wr_check - commit_check;

  // Room is reported every eighth head, and when one is left or nothing.
  logic credit_set;
  wire  other_eight = (ptr_q[$bits(vq_ptr_t)-1:3] != commit_rd[$bits(vq_ptr_t)-1:3]);
  wire  few_left    = (wr_rd - ptr_q <= vq_ptr_t'(1));
  assign credit_set = do_commit && (other_eight || few_left);
  logic credit_ready, credit_lost_q;
  prim_slice #(.Width(QidW)) u_credit (
    .clk_i, .rst_ni, .clr_i(fn_rst_i),
    .in_valid_i(credit_set || credit_lost_q), .in_ready_o(credit_ready), .in_data_i(q_q),
    .out_valid_o(credit_valid_o), .out_ready_i(credit_ready_i), .out_data_o(credit_q_o)
  );

  // ---------------------------------------------------------------- the walk
  assign take_idx = spec_q ? ptr_q : commit_rd;
  assign head_re  = (st_q == StCheck) || ahead_re;
  // A request waits for the report of room, so that the queue named there is still this one.
  assign buf_req_ready_o = (st_q == StIdle) && (!commit_i || credit_ready) && !rewind_i &&
                           !credit_lost_q;

  wire [11:0] in_window = want_q - win_base_q;
  wire        hit       = in_window < {7'd0, win_count_q};
  wire [11:0] left      = limit_q - want_q;
  wire [4:0]  window    = in_table_q ? 5'(WindowMax) : 5'(ChainWindow);
  wire [4:0]  get       = (left < {7'd0, window}) ? left[4:0] : window;

  // The descriptor at hand, checked.
  wire bad_dir      = (d_q.write != IsRx) && !d_q.indirect;
  wire bad_indirect = d_q.indirect && (!indirect_i || in_table_q || d_q.next_valid ||
                      d_q.addr[1:0] != '0 || d_q.len[3:0] != '0 ||
                      d_q.len[16:4] > {1'b0, size_q});
  wire bad_count    = |(count_q & size_q);   // it is counted one by one
  // The last 4 GiB of the address space are nobody's memory: no buffer can wrap around it.
  wire bad_addr     = &d_q.addr[63:32];
  wire bad          = (d_q.len == '0) || bad_addr || bad_dir || bad_indirect || bad_count;

  // ---------------------------------------------------------------- chains read ahead
  logic       ahead_hit, ahead_ready, ahead_err, ahead_idle, ahead_valid, ahead_rd_ready;
  logic [2:0] ahead_slot, ahead_count;
  vq_rd_t     ahead_rd;
  logic       use_q;         // the chain's first part is there or on its way
  logic       in_slot_q;     // the window is what was read ahead
  logic       own_q;         // the read offered is one ahead
  if (!IsRx) begin : g_ahead
    vq_chain_ahead u_ahead (
      .clk_i, .rst_ni, .fn_rst_i, .run_i, .indirect_i,
      .idle_o    (ahead_idle),
      .restart_i ((buf_req_valid_i && buf_req_ready_o && buf_req_q_i != q_q) ||
                  (clear && clear_i.q == q_q)),
      .q_i       (q_q),
      .ring_i    (ring),
      .commit_i  (commit_rd),
      .wr_i      (wr_rd),
      .take_i    (st_q == StHead),
      .take_idx_i(take_idx),
      .head_re_o (ahead_re),
      .head_gnt_i(st_q != StCheck),
      .head_idx_o(ahead_idx),
      .head_i    (head_rd.desc),
      .rd_valid_o(ahead_valid),
      .rd_ready_i(ahead_rd_ready),
      .rd_o      (ahead_rd),
      .done_i,
      .hit_o     (ahead_hit),
      .ready_o   (ahead_ready),
      .err_o     (ahead_err),
      .slot_o    (ahead_slot),
      .count_o   (ahead_count)
    );
  end else begin : g_none
    assign {ahead_hit, ahead_ready, ahead_err, ahead_valid, ahead_re} = '0;
    assign {ahead_slot, ahead_count, ahead_idx, ahead_rd} = '0;
    assign ahead_idle = 1'b1;
    logic unused_ahead;
    assign unused_ahead = ahead_rd_ready;
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni || fn_rst_i) own_q <= 1'b0;
    else if (rd_valid_o) own_q <= own_q && !rd_ready_i;
    else own_q <= ahead_valid;
  end
  assign ahead_rd_ready = own_q && rd_ready_i;
  wire fetched = (st_q == StFetch) && rd_ready_i && !own_q;

  assign rd_valid_o = own_q ? ahead_valid : (st_q == StFetch);
  always_comb begin
    rd_o        = '0;
    rd_o.area   = in_table_q ? AreaAbs : AreaDesc;
    rd_o.q      = q_q;
    rd_o.base   = table_q;
    rd_o.offset = {4'd0, want_q, 4'd0};
    rd_o.len    = {get, 4'd0};
    rd_o.ptr    = Buffer;
    rd_o.client = Client;
    if (own_q) rd_o = ahead_rd;
  end
  vq_cookie_t cookie;
  assign cookie = vq_cookie_t'(done_i.cookie);
  wire done = done_i.valid && (cookie.client == Client);

  assign ram_req_o  = (st_q == StWord0) || (st_q == StWord1 && ram_valid_i);
  assign ram_addr_o = {in_slot_q ? {CtlAhead[11:9], ahead_slot, in_window[1:0]}
                                 : {Buffer[11:8], in_window[3:0]}, (st_q == StWord1)};

  assign seg_valid_o = (st_q == StEmit) || (st_q == StNone) || (st_q == StError);
  assign seg_o       = seg_q;
  assign error_o     = (st_q == StError) && seg_ready_i;
  assign error_q_o   = q_q;
  assign idle_o      = (st_q == StIdle) && !credit_lost_q && ahead_idle;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      st_q          <= StIdle;
      spec_q        <= 1'b0;
      done_q        <= 1'b0;
      credit_lost_q <= 1'b0;
    end else if (fn_rst_i) begin
      st_q          <= StIdle;
      spec_q        <= 1'b0;
      done_q        <= 1'b0;
      credit_lost_q <= 1'b0;
    end else begin
      credit_lost_q <= (credit_set || credit_lost_q) && !credit_ready;
      if (done) done_q <= 1'b1;
      if (st_q == StFetch) done_q <= 1'b0;
      if (commit_i || rewind_i) spec_q <= 1'b0;
      unique case (st_q)
        StIdle: if (buf_req_valid_i && buf_req_ready_o) st_q <= StCheck;
        StCheck: begin
          if (!enabled || !run_i || take_idx == wr_rd) st_q <= StNone;
          else st_q <= StHead;
        end
        StHead: begin
          spec_q <= 1'b1;
          st_q   <= StSegment;
        end
        StSegment: begin
          if (bad) st_q <= StError;
          else if (d_q.indirect) st_q <= StFollow;
          else st_q <= StEmit;
        end
        StEmit: if (seg_ready_i) st_q <= seg_q.last ? StIdle : StFollow;
        StFollow: begin
          if (want_q >= limit_q) st_q <= StError;
          else if (use_q) st_q <= (ahead_ready && ahead_err) ? StError : StFollow;
          else st_q <= hit ? StWord0 : StFetch;
        end
        StFetch: if (fetched) st_q <= StFetchWait;
        StFetchWait: if (done_q) st_q <= done_err_q ? StError : StWord0;
        StWord0: if (ram_gnt_i) st_q <= StWord1;
        StWord1: if (ram_valid_i) st_q <= ram_gnt_i ? StWord2 : StWord0;
        StWord2: if (ram_valid_i) st_q <= StSegment;
        StNone, StError: if (seg_ready_i) st_q <= StIdle;
        default: st_q <= StIdle;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (done) done_err_q <= done_i.err;
    unique case (st_q)
      StIdle: begin
        if (buf_req_valid_i && buf_req_ready_o) q_q <= buf_req_q_i;
        in_table_q  <= 1'b0;
        win_count_q <= '0;
        count_q     <= '0;
      end
      StCheck: begin
        seg_q <= '0;
        seg_q.none <= 1'b1;
        seg_q.off  <= !enabled || !run_i;
        size_q  <= ring_size(ring);
        limit_q <= ring_size(ring);
      end
      StHead: begin
        ptr_q <= take_idx + 1'b1;
        d_q   <= head_rd.desc;
        id_q  <= head_rd.id;
        marker_q <= head_rd.marker;
        use_q <= ahead_hit;
      end
      StSegment: begin
        seg_q <= '{marker: marker_q, none: 1'b0, off: 1'b0, err: bad,
                   last: !d_q.next_valid || bad, id: {5'd0, id_q}, len: {15'd0, d_q.len},
                   addr: d_q.addr};
        if (d_q.indirect) begin
          in_table_q  <= 1'b1;
          table_q     <= d_q.addr;
          limit_q     <= d_q.len[15:4];
          want_q      <= '0;
          win_count_q <= '0;
        end else begin
          want_q  <= d_q.next;
          count_q <= count_q + 12'd1;
        end
      end
      StFollow: begin
        seg_q.err  <= 1'b1;
        seg_q.last <= 1'b1;
        if (use_q && ahead_ready) begin
          use_q       <= 1'b0;
          in_slot_q   <= 1'b1;
          win_base_q  <= want_q;
          win_count_q <= {2'd0, ahead_count};
        end
      end
      StFetch: begin
        in_slot_q   <= 1'b0;
        win_base_q  <= want_q;
        win_count_q <= get;
      end
      StWord1: word0_q <= ram_data_i;
      StWord2: begin
        d_q <= descriptor(word0_q, ram_data_i);
      end
      default: ;
    endcase
  end

  `FERRONIC_ASSERT_STABLE(SegStable, seg_valid_o, seg_ready_i || fn_rst_i, seg_o, clk_i, rst_ni)
  `FERRONIC_ASSERT(NeverPastStored,
                   !(st_q == StHead) || (take_idx - commit_rd) < (wr_rd - commit_rd),
                   clk_i, rst_ni)
  `FERRONIC_ASSERT(OneAtATime, !(commit_i && rewind_i), clk_i, rst_ni)

  logic unused;
  assign unused = ^{cookie, clear_i.q, cfg_i, head_q_i, q_q, check_q_i, look_q_i,
                    in_window[11:4], left[11:5], Buffer[7:0], ahead_idx};
endmodule
