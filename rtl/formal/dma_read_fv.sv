// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Proof of dma_read with its issue and its splitter, at 64 bits with few tags: no tag is used
// twice and none is lost.
//
// On the link: no read carries a tag whose read is still to be completed, and an idle block has no
// tag outstanding. Towards the clients: each request that was taken is done at most once, to its
// own client, in the order in which they were taken, and all of them by the time the block is
// idle. With Drain: it is idle Within cycles after everything on the link is completed, so no tag
// stays taken.
//
// The other side of the link sends any packet at any time: for unknown tags, tags that are free or
// finished, with any length, byte count, address and status, poisoned, and for another function;
// payloads that end too early or too late. `halt_i` may come and go at any time. Assumed: it does
// not complete a read that has not left; requests are of 4 bytes, or with Long of 4 or 256, one
// read or two, whose completions may come in two parts. There is no timeout.
module dma_read_fv
  import ferronic_pkg::*;
  import pcie_pkg::*;
#(
  parameter int unsigned Tags = 2,
  parameter bit          Drain = 1'b1,
  parameter bit          Long = 1'b1,
  parameter int unsigned Within = 8
) (
  input logic         clk_i,
  input logic         halt_i,
  input logic         ctl_valid_i,
  input logic         ctl_long_i,
  input logic         tx_valid_i,
  input logic         tx_long_i,
  input logic         np_ready_i,
  input logic         rc_valid_i,
  input logic         rc_eop_i,
  input logic [127:0] rc_hdr_i,
  input logic         pick_i
);
  localparam int unsigned TagW = $clog2(Tags);
  localparam logic [15:0] Requester = 16'h0100;

  logic rst_n = 1'b0;
  always_ff @(posedge clk_i) rst_n <= 1'b1;

  logic         ctl_ready, tx_ready, np_valid, idle;
  dma_rd_req_t  ctl_req, tx_req;
  dma_rd_done_t ctl_done, tx_done;
  mem_req_t     np_req;
  logic [7:0]   np_tag;
  logic [1:0]   mark;
  logic         inside_q;       // within a packet from the link

  assign ctl_req = '{addr: '0, len: (Long && ctl_long_i) ? 16'd256 : 16'd4, ptr: '0,
                     cookie: 8'(mark)};
  assign tx_req  = '{addr: '0, len: (Long && tx_long_i) ? 16'd256 : 16'd4, ptr: '0,
                     cookie: 8'(mark)};

  dma_read #(.DataW(64), .Tags(Tags), .TimeoutCycles(64)) u_dut (
    .clk_i,
    .rst_ni         (rst_n),
    .halt_i,
    .max_read_i     (13'd128),
    .ext_tag_i      (1'b0),
    .timeout_off_i  (1'b1),
    .requester_i    (Requester),
    .idle_o         (idle),
    .ctl_req_valid_i(ctl_valid_i),
    .ctl_req_ready_o(ctl_ready),
    .ctl_req_i      (ctl_req),
    .ctl_done_o     (ctl_done),
    .tx_req_valid_i (tx_valid_i),
    .tx_req_ready_o (tx_ready),
    .tx_req_i       (tx_req),
    .tx_done_o      (tx_done),
    .ram_we_o       (),
    .ram_dst_o      (),
    .ram_waddr_o    (),
    .ram_winc_o     (),
    .ram_wdata_o    (),
    .np_valid_o     (np_valid),
    .np_ready_i,
    .np_req_o       (np_req),
    .np_tag_o       (np_tag),
    .np_pending_i   (1'b0),
    .rc_valid_i,
    .rc_ready_o     (),
    .rc_sop_i       (!inside_q),
    .rc_eop_i,
    .rc_hdr_i,
    .rc_data_i      ('0),
    .quiet_o        (),
    .timeout_armed_o(),
    .timeout_left_o (),
    .skip_i         ('0),
    .ev_unexpected_o(),
    .ev_ur_o        (),
    .ev_ca_o        (),
    .ev_poisoned_o  (),
    .ev_timeout_o   ()
  );

  // ---------------------------------------------------------------- reads on the link
  // DWs that the read of each tag still misses: none, 1, 16 or 32.
  typedef enum logic [1:0] {Free, One, Half, Whole} miss_e;
  miss_e [Tags-1:0] miss_q;   // Free is 0
  wire [TagW-1:0]   tag_out = np_tag[TagW-1:0];
  wire              leaves = np_valid && np_ready_i;

  // A completion as the specification has it: what it answers, and how far.
  wire [TagW-1:0] tag_in = rc_hdr_i[72 +: TagW];
  wire [9:0]      dws    = rc_hdr_i[9:0];
  wire [11:0]     bytes  = rc_hdr_i[43:32];
  wire [6:0]      low    = rc_hdr_i[70:64];
  wire begins  = rc_valid_i && !inside_q;
  wire known   = begins && (rc_hdr_i[31:24] inside {TlpCplD, TlpCpl}) &&
                 (rc_hdr_i[95:80] == Requester) && (rc_hdr_i[79:72+TagW] == '0) &&
                 (miss_q[tag_in] != Free);
  wire refused = known && (rc_hdr_i[31:24] == TlpCpl || rc_hdr_i[47:45] != CplSc);
  wire fits    = known && !refused &&
                 ((miss_q[tag_in] == One && bytes == 12'd4 && low == 7'd0) ||
                  (miss_q[tag_in] == Whole && bytes == 12'd128 && low == 7'd0) ||
                  (miss_q[tag_in] == Half && bytes == 12'd64 && low == 7'd64));
  wire part    = fits && miss_q[tag_in] == Whole && dws == 10'd16;
  wire all     = fits && dws == ((miss_q[tag_in] == One) ? 10'd1 :
                                 (miss_q[tag_in] == Half) ? 10'd16 : 10'd32);

  always_ff @(posedge clk_i) begin
    if (!rst_n) begin
      inside_q <= 1'b0;
      miss_q   <= '{default: Free};
    end else begin
      if (rc_valid_i) inside_q <= !rc_eop_i;
      if (refused || all) miss_q[tag_in] <= Free;
      else if (part) miss_q[tag_in] <= Half;
      if (leaves) miss_q[tag_out] <= (np_req.dw_len == 10'd1) ? One : Whole;
    end
  end

  // ---------------------------------------------------------------- requests
  // Two of them are followed, chosen at will, and have a mark for a cookie: 1 and, later, 2. What
  // holds for any two holds for all.
  wire ctl_in = ctl_valid_i && ctl_ready;
  wire tx_in  = tx_valid_i && tx_ready;
  wire take   = ctl_in || tx_in;
  dma_rd_done_t done;
  assign done = ctl_done.valid ? ctl_done : tx_done;
  wire finish = ctl_done.valid || tx_done.valid;
  logic [2:1] taken_q, done_q;     // the followed requests
  logic [2:1] client_q;
  logic [4:0] calm_q;
  wire calm = !halt_i && !ctl_valid_i && !tx_valid_i && np_ready_i && !rc_valid_i && !inside_q &&
              !np_valid && (miss_q == '0);
  assign mark = !pick_i ? 2'd0 : !taken_q[1] ? 2'd1 : !taken_q[2] ? 2'd2 : 2'd0;

  always_ff @(posedge clk_i) begin
    if (!rst_n) begin
      taken_q <= '0;
      done_q  <= '0;
      calm_q  <= '0;
    end else begin
      for (int m = 1; m <= 2; m++) begin
        if (take && mark == 2'(m)) begin
          taken_q[m]  <= 1'b1;
          client_q[m] <= tx_in;
        end
        if (finish && done.cookie == 8'(m)) done_q[m] <= 1'b1;
      end
      calm_q <= !calm ? '0 : (calm_q == 5'(Within)) ? calm_q : calm_q + 1'b1;
    end
  end

  // ---------------------------------------------------------------- assumptions
  logic       ctl_wait_q, tx_wait_q, ctl_long_q, tx_long_q;
  logic       begins_q;
  logic [7:0] tag_q;
  always_ff @(posedge clk_i) begin
    begins_q     <= rst_n && begins;
    tag_q        <= rc_hdr_i[79:72];
    ctl_wait_q   <= rst_n && ctl_valid_i && !ctl_ready;
    tx_wait_q    <= rst_n && tx_valid_i && !tx_ready;
    ctl_long_q   <= ctl_long_i;
    tx_long_q    <= tx_long_i;
  end
  always_comb begin
    if (!rst_n) assume (!ctl_valid_i && !tx_valid_i && !rc_valid_i);
    assume (!ctl_wait_q || (ctl_valid_i && ctl_long_i == ctl_long_q));
    assume (!tx_wait_q || (tx_valid_i && tx_long_i == tx_long_q));
    // Completions of a read in the parts that are followed here.
    assume (!fits || part || all || (dws > 10'd32 || dws == '0));
    // Nothing is completed before it has left; a tag is looked up one cycle after it came.
    assume (!(begins && np_valid && rc_hdr_i[79:72] == np_tag));
    assume (!(begins_q && np_valid && tag_q == np_tag));
  end

  for (genvar t = 0; t < int'(Tags); t++) begin : g_tag
    always_ff @(posedge clk_i) begin
      if (rst_n && np_valid && tag_out == TagW'(t))
        NotTwice: assert (miss_q[t] == Free);
      if (rst_n && idle) IdleIsFree: assert (miss_q[t] == Free);
    end
  end

  always_ff @(posedge clk_i) begin
    if (rst_n) begin
      KnownTag: assert (!np_valid || np_tag < 8'(Tags));
      NotBoth: assert (!(ctl_done.valid && tx_done.valid));
      if (finish && done.cookie == 8'd1)
        FirstOnce: assert (taken_q[1] && !done_q[1] && client_q[1] == tx_done.valid);
      if (finish && done.cookie == 8'd2)
        SecondOnce: assert (taken_q[2] && !done_q[2] && client_q[2] == tx_done.valid);
      if (finish && done.cookie == 8'd2) InOrder: assert (done_q[1]);
      Marked: assert (!finish || done.cookie < 8'd3);
      if (idle) IdleIsEmpty: assert (done_q == taken_q);
      if (Drain && calm_q == 5'(Within)) NoneLost: assert (idle);
    end
  end
endmodule
