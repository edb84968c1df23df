// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// MSI-X table and pending bits, and the messages. Table at BAR0 0x4000, pending bits at 0x5000.
//
// A message that waits for the posted channel when its vector or the function is masked, or bus
// mastering ends, is taken back and its vector pends.
//
// An interrupt that may not be sent now (vector or function masked, or no bus mastering) sets the
// pending bit of its vector, and is sent once when that ends. While MSI-X is off, interrupts are
// dropped and pending bits cleared. A vector that does not exist is accepted and ignored.
//
// One thing at a time: a register access, an interrupt (eight cycles to the message), or a search
// of the pending bits. A message waits in a register of its own for the posted channel, so that
// register accesses never wait for the link. A read of pending bits gathers them, one a cycle.
//
// `fn_rst_i` clears the pending bits and drops a message that the channel has not taken; the table
// belongs to the host's interrupt code and survives a virtio reset. `clear_i` (function level
// reset) also masks every vector. Either walks the table once, and accesses wait meanwhile.
`include "ferronic_assert.svh"
module msix
  import ferronic_pkg::*;
#(
  parameter int unsigned NumVectors = 9
) (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic        fn_rst_i,
  input  logic        clear_i,
  input  logic        halt_i,        // interrupts are dropped
  input  logic        enable_i,
  input  logic        mask_i,        // function mask
  input  logic        bus_master_i,
  output logic        idle_o,

  input  reg_req_t    reg_req_i,     // addresses 0x4000 to 0x5fff only
  output reg_rsp_t    reg_rsp_o,

  input  irq_req_t    irq_i,
  output logic        irq_ready_o,

  output logic        msg_valid_o,
  input  logic        msg_ready_i,
  output logic [63:2] msg_addr_o,
  output logic [31:0] msg_data_o,

  output logic        ev_irq_o
);
  if (NumVectors < 1 || NumVectors > 256) begin : g_bad_vectors
    $error("%m: NumVectors (%0d) must be 1 to 256", NumVectors);
  end

  localparam int unsigned VecW = (NumVectors > 1) ? $clog2(NumVectors) : 1;
  localparam int unsigned PbaWords = (NumVectors + 31) / 32;
  typedef logic [VecW-1:0] vec_t;

  // Whether there is such a vector; bit by bit, because that is smaller than a subtraction.
  function automatic logic exists(logic [7:0] vector);
    logic [8:0] count;
    logic       less;
    count = 9'(NumVectors);
    less  = 1'b0;
    for (int b = 0; b < 8; b++) less = (count[b] && !vector[b]) || (count[b] == vector[b] && less);
    return less || count[8];
  endfunction

  // ---------------------------------------------------------------- table: four words a vector
  // Address low, address high, data, control (bit 0: masked).
  logic             tab_we, tab_re;
  logic [VecW+1:0]  tab_waddr, tab_raddr;
  logic [31:0]      tab_wdata, tab_rdata;

  prim_ram_1r1w #(.Width(32), .Depth(4 * (1 << VecW))) u_table (
    .clk_i,
    .we_i   (tab_we),
    .waddr_i(tab_waddr),
    .wdata_i(tab_wdata),
    .re_i   (tab_re),
    .raddr_i(tab_raddr),
    .rdata_o(tab_rdata)
  );

  // ---------------------------------------------------------------- pending bits
  logic pba_we, pba_wdata, pba_rdata;
  vec_t pba_addr;

  prim_lutram #(.Width(1), .Depth(NumVectors)) u_pba (
    .clk_i,
    .we_i   (pba_we),
    .waddr_i(pba_addr),
    .wdata_i(pba_wdata),
    .raddr_i(pba_addr),
    .rdata_o(pba_rdata)
  );

  // ---------------------------------------------------------------- control
  typedef enum logic [3:0] {
    StClear,            // walk after reset
    StIdle,
    StReg,              // table word is being read
    StPba,              // pending bits are being gathered
    StRegDone,
    StCtrl,             // control word of vec_q is being read
    StLow, StHigh, StData, StEmit,
    StRecall            // the message is taken back: vec_q pends
  } state_e;
  state_e          state_q;
  vec_t            vec_q;
  logic [VecW+1:0] walk_q;       // also the vector under search, in its low bits
  logic            scan_q;       // searching the pending bits
  logic            rescan_q;     // search again: something may have been unmasked
  logic            any_q;        // some pending bit may be set
  logic            from_scan_q;  // vec_q was pending
  logic            enable_q;
  logic            open_q;       // enabled, not masked, bus master: seen last cycle
  logic            msg_valid_q;
  vec_t            msg_vec_q;
  logic            recall_q;     // the vector of the message was masked
  logic            off_q;        // MSI-X was turned off: forget what pends
  logic            wipe_q;       // the walk masks the vectors too
  logic [31:0]     high_q, data_q;
  logic [31:2]     low_q;
  logic [4:0]      gather_q;

  wire open = enable_i && !mask_i && bus_master_i;
  wire irq_known = (irq_i.vector[15:8] == '0) && exists(irq_i.vector[7:0]);

  wire reg_new = reg_req_i.valid && !reg_rsp_o.ack;
  wire is_pba  = reg_req_i.addr[12];
  // Offset of the access in its page, in words.
  wire [9:0] reg_word = reg_req_i.addr[11:2];
  wire reg_in_table = !is_pba && exists(reg_word[9:2]);
  wire reg_in_pba   = is_pba && (32'(reg_word) < PbaWords);
  wire [7:0] gather_vec = {reg_word[2:0], gather_q};

  // Priorities when idle: registers, then a new interrupt, then the search.
  // A message that waits is not offered from the cycle on after which it must not be sent: before
  // the completion of the write that says so.
  wire withheld  = !open_q || recall_q;
  wire recall    = (state_q == StIdle) && msg_valid_q && withheld;
  wire forget    = (state_q == StIdle) && off_q && !msg_valid_q;
  wire take_reg  = (state_q == StIdle) && reg_new && !recall && !forget;
  wire can_irq   = (state_q == StIdle) && !reg_new && !msg_valid_q && !forget;
  assign irq_ready_o = can_irq;
  wire take_irq  = can_irq && irq_i.valid;
  wire irq_real  = take_irq && irq_known && enable_i && !halt_i;
  wire take_scan = can_irq && !irq_i.valid && scan_q;
  vec_t scan_vec;
  assign scan_vec = walk_q[VecW-1:0];
  wire scan_end  = (scan_vec == VecW'(NumVectors - 1));
  wire scan_hit  = pba_rdata && open;

  // ---------------------------------------------------------------- RAM ports
  logic [31:0] reg_wmask;
  for (genvar b = 0; b < 4; b++) begin : g_mask
    assign reg_wmask[8*b +: 8] = {8{reg_req_i.be[b]}};
  end

  always_comb begin
    tab_re    = 1'b1;
    tab_raddr = {vec_q, 2'd3};
    unique case (state_q)
      StIdle:  tab_raddr = take_reg ? reg_word[VecW+1:0] :
                           take_irq ? {irq_i.vector[VecW-1:0], 2'd3} : {scan_vec, 2'd3};
      StCtrl:  tab_raddr = {vec_q, 2'd0};
      StLow:   tab_raddr = {vec_q, 2'd1};
      StHigh:  tab_raddr = {vec_q, 2'd2};
      default: tab_raddr = {vec_q, 2'd3};
    endcase

    tab_we    = 1'b0;
    tab_waddr = reg_word[VecW+1:0];
    tab_wdata = (reg_req_i.wdata & reg_wmask) | (tab_rdata & ~reg_wmask);
    if (reg_word[1:0] == 2'd3) tab_wdata[31:1] = '0;
    if (reg_word[1:0] == 2'd0) tab_wdata[1:0] = '0;
    if (state_q == StClear) begin
      tab_we    = wipe_q;
      tab_waddr = walk_q;
      tab_wdata = {31'b0, walk_q[1:0] == 2'd3};
    end else if (state_q == StReg) begin
      tab_we = reg_req_i.write && reg_in_table;
    end
  end

  wire masked   = tab_rdata[0] || !open;
  wire go       = (state_q == StCtrl) && !masked;
  wire set_pend = ((state_q == StCtrl) && masked && !from_scan_q) || (state_q == StRecall);
  wire clr_pend = go && from_scan_q;

  always_comb begin
    unique case (state_q)
      StClear: pba_addr = walk_q[VecW+1:2];
      StIdle:  pba_addr = scan_vec;
      StPba:   pba_addr = gather_vec[VecW-1:0];
      default: pba_addr = vec_q;
    endcase
  end
  assign pba_we    = (state_q == StClear) || set_pend || clr_pend;
  assign pba_wdata = set_pend;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q     <= StClear;
      vec_q       <= '0;
      walk_q      <= '0;
      scan_q      <= 1'b0;
      rescan_q    <= 1'b0;
      any_q       <= 1'b0;
      from_scan_q <= 1'b0;
      open_q      <= 1'b0;
      msg_valid_q <= 1'b0;
      msg_vec_q   <= '0;
      recall_q    <= 1'b0;
      off_q       <= 1'b0;
      enable_q    <= 1'b0;
      wipe_q      <= 1'b1;
      reg_rsp_o.ack <= 1'b0;
      ev_irq_o    <= 1'b0;
    end else begin
      open_q        <= open;
      reg_rsp_o.ack <= 1'b0;
      ev_irq_o      <= msg_valid_o && msg_ready_i;
      if (msg_valid_o && msg_ready_i) msg_valid_q <= 1'b0;
      if (open && !open_q) rescan_q <= 1'b1;

      unique case (state_q)
        StClear: begin
          walk_q <= walk_q + 1'b1;
          scan_q <= 1'b0;
          any_q  <= 1'b0;
          if (walk_q == '1) begin
            state_q <= StIdle;
            wipe_q  <= 1'b0;
          end
        end
        StIdle: begin
          if (recall) begin
            msg_valid_q <= 1'b0;
            vec_q       <= msg_vec_q;
            state_q     <= enable_i ? StRecall : StIdle;
          end else if (forget) begin
            off_q   <= 1'b0;
            walk_q  <= '0;
            state_q <= StClear;
          end else if (take_reg) begin
            state_q <= StReg;
          end else if (take_irq) begin
            vec_q       <= irq_i.vector[VecW-1:0];
            from_scan_q <= 1'b0;
            if (irq_real) state_q <= StCtrl;
          end else if (take_scan) begin
            vec_q       <= scan_vec;
            from_scan_q <= 1'b1;
            walk_q      <= walk_q + 1'b1;
            if (scan_end) scan_q <= 1'b0;
            if (scan_hit) state_q <= StCtrl;
          end else if (can_irq && rescan_q) begin
            rescan_q <= 1'b0;
            scan_q   <= any_q;
            walk_q   <= '0;
          end
        end
        StReg:     state_q <= reg_in_pba ? StPba : StRegDone;
        StPba:     if (gather_q == '1) state_q <= StRegDone;
        StRegDone: state_q <= StIdle;
        StCtrl: begin
          state_q <= go ? StLow : StIdle;
          if (set_pend) any_q <= 1'b1;
        end
        StLow:   state_q <= StHigh;
        StHigh:  state_q <= StData;
        StData:  state_q <= StEmit;
        StEmit:  state_q <= StIdle;
        StRecall: begin
          state_q  <= StIdle;
          any_q    <= 1'b1;
          rescan_q <= 1'b1;
        end
        default: state_q <= StIdle;
      endcase

      if (state_q == StReg) begin
        reg_rsp_o.ack <= !reg_in_pba;
        if (reg_req_i.write && reg_in_table && reg_word[1:0] == 2'd3) rescan_q <= 1'b1;
      end
      if (state_q == StReg && reg_req_i.write && reg_in_table && reg_req_i.be[0] &&
          reg_word[1:0] == 2'd3 && reg_word[VecW+1:2] == msg_vec_q) begin
        recall_q <= reg_req_i.wdata[0];
      end
      if (state_q == StPba && gather_q == '1) reg_rsp_o.ack <= 1'b1;
      if (state_q == StEmit) begin
        msg_valid_q <= 1'b1;
        msg_vec_q   <= vec_q;
        recall_q    <= 1'b0;
      end
      enable_q <= enable_i;
      if (enable_q && !enable_i) off_q <= 1'b1;

      // An access in progress is begun again after the walk.
      if (fn_rst_i || clear_i) begin
        state_q       <= StClear;
        walk_q        <= '0;
        rescan_q      <= 1'b0;
        msg_valid_q   <= 1'b0;
        reg_rsp_o.ack <= 1'b0;
      end
      if (clear_i) wipe_q <= 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (state_q == StReg) gather_q <= '0;
    else if (state_q == StPba) gather_q <= gather_q + 5'd1;
    if (state_q == StReg) reg_rsp_o.rdata <= reg_in_table ? tab_rdata : '0;
    else if (state_q == StPba) begin
      reg_rsp_o.rdata <= {pba_rdata && exists(gather_vec), reg_rsp_o.rdata[31:1]};
    end
    if (state_q == StLow) low_q <= tab_rdata[31:2];
    if (state_q == StHigh) high_q <= tab_rdata;
    if (state_q == StData) data_q <= tab_rdata;
  end

  assign msg_valid_o = msg_valid_q && !withheld;
  assign msg_addr_o  = {high_q, low_q};
  assign msg_data_o  = data_q;
  assign idle_o      = (state_q == StIdle) && !msg_valid_q && !scan_q && !rescan_q && !off_q;

  `FERRONIC_ASSERT_STABLE(MsgStable, msg_valid_q,
    (msg_ready_i && msg_valid_o) || fn_rst_i || clear_i || recall,
    ({msg_addr_o, msg_data_o}), clk_i, rst_ni)
endmodule
