// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Notification region: one doorbell of 4 bytes for each virtqueue. Without NOTIFICATION_DATA a
// write says "look"; with it bits 31:16 carry the available index (virtio 1.2, "Driver
// notifications"). When the driver sets DRIVER_OK, every queue is looked at once, so buffers posted
// earlier are seen.
//
// Doorbells wait in a FIFO; a full one holds the register bus, none is lost. Latency two cycles.
module virtio_doorbell
  import ferronic_pkg::*;
#(
  parameter int unsigned NumQueues = 8
) (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic        fn_rst_i,
  input  logic        notif_data_i,
  input  logic        driver_ok_i,
  input  reg_req_t    req_i,
  output reg_rsp_t    rsp_o,
  output logic        db_valid_o,
  input  logic        db_ready_i,
  output qid_t        db_q_o,
  output logic        db_has_idx_o,
  output logic [15:0] db_idx_o
);
  localparam int unsigned W = QidW + 1 + 16;

  logic            ack_q, ok_q, sweep_q, ready;
  qid_t            sweep_at_q;
  logic [4:0]      level;
  wire  [9:0]      number = req_i.addr[11:2];
  wire             known  = (number < 10'(NumQueues));
  wire             ring   = req_i.valid && req_i.write && !ack_q && known && |req_i.be;
  wire             has_idx = notif_data_i && (req_i.be == 4'hf);

  prim_fifo #(.Width(W), .Depth(16)) u_fifo (
    .clk_i, .rst_ni, .clr_i(fn_rst_i),
    .wr_valid_i(sweep_q || ring), .wr_ready_o(ready),
    .wr_data_i(sweep_q ? {sweep_at_q, 17'd0} : {number[QidW-1:0], has_idx, req_i.wdata[31:16]}),
    .rd_valid_o(db_valid_o), .rd_ready_i(db_ready_i),
    .rd_data_o({db_q_o, db_has_idx_o, db_idx_o}), .level_o(level)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      ack_q      <= 1'b0;
      ok_q       <= 1'b0;
      sweep_q    <= 1'b0;
      sweep_at_q <= '0;
    end else begin
      ack_q <= req_i.valid && !ack_q && (!ring || (ready && !sweep_q));
      ok_q  <= driver_ok_i;
      if (fn_rst_i) begin
        sweep_q    <= 1'b0;
        sweep_at_q <= '0;
      end else if (driver_ok_i && !ok_q) begin
        sweep_q    <= 1'b1;
        sweep_at_q <= '0;
      end else if (sweep_q && ready) begin
        sweep_at_q <= sweep_at_q + 1'b1;
        sweep_q    <= (sweep_at_q != qid_t'(NumQueues - 1));
      end
    end
  end

  assign rsp_o = '{ack: ack_q, rdata: '0};

  logic unused;
  assign unused = ^{level, req_i};
endmodule
